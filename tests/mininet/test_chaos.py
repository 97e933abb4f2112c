# SPDX-License-Identifier: Apache-2.0
"""Faults in real time: a round passes, what fails is reported, and nothing is left, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.eventually import LONG_S
from tests.mininet.conftest import ROOT, Harness


def start(harness: Harness, *words: str) -> subprocess.Popen[str]:
    """Chaos as a user starts it."""
    return harness.start(
        harness.job(),
        args=[sys.executable, "-m", "checks.soak.chaos", "--out", str(harness.out), *words],
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'mininet'}"},
    )


def started(harness: Harness) -> subprocess.Popen[str]:
    """One with flows on their way and a first fault."""
    process = start(harness)
    assert process.stdout is not None
    assert any(line.startswith("fault: ") for line in process.stdout)
    return process


def test_a_round(harness: Harness) -> None:
    process = start(harness, "--minutes", "0", "--seed", "5")
    said, complained = process.communicate(timeout=2 * LONG_S)
    assert (process.returncode, complained) == (0, "")
    assert "fault: " in said
    assert harness.left_behind() == []


def test_a_process_that_ends_by_itself_fails_it(harness: Harness) -> None:
    process = started(harness)
    harness.kill("tailrace.hosts.driver")
    _, complained = process.communicate(timeout=LONG_S)
    assert process.returncode == 1
    assert complained.startswith("soak.chaos: hosts ended with signal 9 (Killed)")
    assert harness.left_behind() == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_end_by_a_signal_leaves_nothing(harness: Harness, sign: signal.Signals) -> None:
    process = started(harness)
    process.send_signal(sign)
    _, complained = process.communicate(timeout=LONG_S)
    assert (128 + sign, "") == (process.returncode, complained)
    assert harness.left_behind() == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--minutes", "x"), "soak.chaos: argument --minutes: invalid int value: 'x' (see --help)\n"),
        (("--scheme", "no"), "soak.chaos: scheme 'no' is not known"),
        (("--seed", "-1"), "soak.chaos: seed"),
    ],
)
def test_bad_input(harness: Harness, words: tuple[str, str], line: str) -> None:
    process = start(harness, *words)
    said, complained = process.communicate(timeout=LONG_S)
    assert (process.returncode, said, complained.count("\n")) == (2, "", 1)
    assert complained.startswith(line)
