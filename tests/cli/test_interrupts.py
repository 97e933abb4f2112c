# SPDX-License-Identifier: Apache-2.0
"""Commands that are interrupted or killed at moments of chance: nothing of them stays, and what was finished is used."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventually import LONG_S, eventually
from tests.long import times
from tests.processes import NOT_IGNORED

ROOT = Path(__file__).resolve().parents[2]
MOMENTS = times(100, 33)
LATEST_S = 8.0
MAIN = "tailrace.cli.main"
SMALL = (
    *("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2"),
    *("--workload", "permutation:size=2MiB"),
)
COMPARE = (MAIN, "compare", "--scheme", "ecmp,flowcut", *SMALL, "--seed", "1..3", "--out")
COMMANDS = {
    "sweep": (
        *(MAIN, "sweep", "--set", "scheme=ecmp,letflow", "--set", "seed=1..4", "--workers", "2"),
        *(*SMALL, "--out"),
    ),
    "compare": COMPARE,
    "paper": (MAIN, "paper", "flowcut_fig10", "--out"),
    "report": (MAIN, "report"),
    "make run": ("tailrace.cli.make_run",),
}
"""A module and its words; the folder of results comes last, but for `make run`, which has it in OUT."""

UNFINISHED = re.compile(r"\.(partial|making)-[0-9a-f]{8}$")


def started(command: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    """A command in a session of its own, known by its folder for temporary files."""
    out = str(folder / "out")
    module, *words = command
    more = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), "TARGET": "virtual", "OUT": out}
    return subprocess.Popen(
        [*NOT_IGNORED, sys.executable, "-m", module, *words, *([out] if words else [])],
        cwd=folder,
        env={**os.environ, **more},
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def processes(folder: Path) -> list[int]:
    """What a command has started and still lives."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    pids = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                pids.append(int(place.name))
        except OSError:
            continue
    return pids


def left(folder: Path) -> list[str]:
    """Temporary files, and half-written ones beside results."""
    half = [path for path in folder.rglob(".*") if UNFINISHED.search(path.name)]
    return [str(path) for path in [*(folder / "tmp").iterdir(), *half]]


def finished(folder: Path) -> set[Path]:
    """The folders of runs that are whole."""
    folders = {path.parent for path in (folder / "out").rglob("summary.json")}
    return {path for path in folders if not any(UNFINISHED.search(part) for part in path.parts)}


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_moment(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    name = list(COMMANDS)[number % len(COMMANDS)]
    how = rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)) if number else signal.SIGKILL
    after_s = rng.uniform(0.5, LATEST_S)
    description = f"{name} {how.name} after {after_s:.1f} s"
    (tmp_path / "tmp").mkdir()
    if name == "report":
        made = started(COMPARE, tmp_path)
        _, text = made.communicate(timeout=LONG_S)
        assert made.returncode == 0, text
    process = started(COMMANDS[name], tmp_path)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        # SIGKILL is for the one process, as the kernel's for lack of memory; a terminal's are for all
        os.kill(process.pid, how) if how == signal.SIGKILL else os.killpg(process.pid, how)
    _, text = process.communicate(timeout=LONG_S)
    assert "Traceback" not in text, description
    assert eventually(lambda: not processes(tmp_path)), f"{description}: processes are left"
    if how != signal.SIGKILL:
        assert left(tmp_path) == [], description
    before = finished(tmp_path)
    again = started(COMMANDS[name], tmp_path)
    _, text = again.communicate(timeout=LONG_S)
    assert again.returncode == 0, f"{description}: {text}"
    assert left(tmp_path) == [], description
    assert before <= finished(tmp_path), description
    if name in ("sweep", "paper") and before:
        assert "results were there already" in text, description
