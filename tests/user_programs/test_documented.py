# SPDX-License-Identifier: Apache-2.0
"""Every command of docs/programs/index.md and of the pages of docs/programs, on stand-ins for the tutorials' files: a
program with the same tables' place in the folder, and captures and flows as the pages name them.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tests.long import long
from tests.test_readme import OF_USERS
from tests.user_programs.network import (
    copy_program,
    frames_of,
    make_network,
    runtime,
    topology,
    write_capture,
)

PROGRAMS = (
    "build/basic",
    "other/basic",
    "build/ecn",
    "plain/ecn",
    "build/link_monitor",
    "build/load_balance",
)
IN_MININET = "--target native"
STOPS = "--stop-at"


def blocks(kind: str) -> list[str]:
    texts = [page.read_text("utf-8") for page in OF_USERS]
    return [block for text in texts for block in re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)]


LINES = [line for block in blocks("") for line in block.replace("\\\n", " ").splitlines()]
TAILRACE = [line for line in LINES if line.startswith("tailrace ")]


@pytest.fixture(autouse=True)
def exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of all exercises, with flows.csv as the page on ecn makes it."""
    make_network(tmp_path)
    hosts = topology(
        **{switch: {"runtime_json": f"pod-topo/{switch}-runtime.json"} for switch in ("s1", "s2")}
    )
    (tmp_path / "pod-topo").mkdir()
    (tmp_path / "pod-topo" / "topology.json").write_text(json.dumps(hosts))
    for switch in ("s1", "s2"):
        (tmp_path / "pod-topo" / f"{switch}-runtime.json").write_text(json.dumps(runtime(switch)))
    for program in PROGRAMS:
        copy_program(tmp_path / f"{program}.json")
    for capture in ("h1.pcap", "probes.pcap"):
        write_capture(tmp_path / capture, frames_of("h1"))
    (tmp_path / "flows.csv").write_text("src,dst,bytes,start\nh1,h4,20KB,0ms\nh2,h3,20KB,5ms\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_lines_are_of_known_programs() -> None:
    assert len(TAILRACE) > 8
    rest = [line.split()[0] for line in LINES if line not in TAILRACE]
    assert set(rest) <= {"p4c-bm2-ss", "mkdir", "printf"}


@pytest.mark.parametrize("line", [line for line in TAILRACE if IN_MININET not in line and STOPS not in line])
def test_commands_run(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", [line for line in TAILRACE if STOPS in line])
def test_commands_that_stop_run(line: str) -> None:
    """The end of standard input resumes the run."""
    words = [sys.executable, "-m", "tailrace.cli.main", *shlex.split(line)[1:]]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "switches serve P4Runtime" in done.stderr


@long
@pytest.mark.parametrize("line", [line for line in TAILRACE if IN_MININET in line])
def test_commands_run_in_mininet(line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0


def test_the_page_on_ecn_makes_its_flows(exercise: Path) -> None:
    (line,) = (line for line in LINES if line.startswith("printf"))
    subprocess.run(["sh", "-c", line], check=True)
    assert (exercise / "flows.csv").read_text().splitlines()[0] == "src,dst,bytes,start"


def test_the_example_in_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "programs.md", "exec"), {})
