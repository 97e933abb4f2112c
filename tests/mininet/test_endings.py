"""However a run ends, nothing of it stays, and what went wrong is one line."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from tests.eventually import eventually
from tests.long import more
from tests.mininet.conftest import Harness

LONG_FLOW = {
    "id": 0,
    "src": "10.0.1.2",
    "dst": "10.0.2.2",
    "bytes": 1 << 30,
    "start_ns": 0,
    "qpn": 1,
    "sport": 50000,
}


def in_traffic(harness: Harness, **options: Any) -> subprocess.Popen[str]:
    """A run whose flow is on its way, and would be for a quarter of an hour."""
    process = harness.start(harness.job(flows=[LONG_FLOW]), **options)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line) == {"phase": "traffic", "done": 0, "flows": 1}:
            return process
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), *more((signal.SIGINT, 130), (signal.SIGHUP, 129))]
)
def test_asked_to_end(harness: Harness, number: signal.Signals, code: int) -> None:
    """A signal ends the run at once, with the exit code that shells give."""
    process = in_traffic(harness)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code
    assert "Traceback" not in err
    assert harness.left_behind() == []


def test_interrupted_as_a_group(harness: Harness) -> None:
    """A signal to the whole process group, twice for the harness, is still one orderly end."""
    process = in_traffic(harness, start_new_session=True)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "run_fabric: interrupted\n")
    assert harness.left_behind() == []


def test_killed(harness: Harness) -> None:
    """Killing the process that was started ends everything else, without anybody's help."""
    process = in_traffic(harness)
    process.kill()
    process.communicate()
    assert eventually(lambda: not harness.left_behind())


def test_killed_with_its_child_and_started_again(harness: Harness) -> None:
    """Only files can stay when both processes are killed at once; the next start removes them."""
    process = in_traffic(harness, start_new_session=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert eventually(lambda: not harness.processes())
    (old,) = harness.temporary.iterdir()
    assert harness.run(harness.job(), more=["--prompt"]).returncode == 0
    assert not old.exists()
    assert harness.left_behind() == []


def test_two_runs_at_a_time(harness: Harness) -> None:
    """A run leaves the files of another one, which is alive, alone."""
    process = in_traffic(harness)
    assert harness.run(harness.job(), more=["--prompt"]).returncode == 0
    assert len(list(harness.temporary.iterdir())) == 1
    assert process.poll() is None
    process.terminate()
    process.communicate()
    assert harness.left_behind() == []


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("tailrace.switch.daemon.cli", "spine1.sock"), "spine1"),
        (("serve_controller.py",), "controller"),
        (("tailrace.hosts.driver",), "hosts"),
    ],
)
def test_part_dies(harness: Harness, words: tuple[str, ...], name: str) -> None:
    """A run whose switch, controller or hosts die fails, with a line that says which."""
    process = in_traffic(harness)
    harness.kill(*words)
    _, err = process.communicate()
    assert process.returncode == 1
    assert err.startswith(f"run_fabric: {name} ended with signal 9 (Killed)")
    assert err.count("\n") == 1
    assert harness.left_behind() == []


def test_nobody_listens(harness: Harness) -> None:
    """A run whose starter has gone ends at its next word."""
    process = harness.start(harness.job(flows=[LONG_FLOW]))
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == "run_fabric: nobody reads the progress any more\n"
    assert process.wait() == 1
    assert harness.left_behind() == []


def test_harness_itself_dies(harness: Harness) -> None:
    """The first process in the namespaces takes everything with it; the run has failed."""
    process = in_traffic(harness)
    (inner,) = [
        pid for pid, line in harness.processes().items() if "run_fabric" in line and pid != process.pid
    ]
    os.kill(inner, signal.SIGKILL)
    _, err = process.communicate()
    assert (process.returncode, err) == (1, "run_fabric: the run was killed by signal 9 (Killed)\n")
    assert eventually(lambda: not harness.left_behind())
