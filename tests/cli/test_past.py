# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace --run FOLDER --flow N --psn N`: what it shows, and what it refuses."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest

from tailrace import api
from tailrace.study.packet.history import PacketHistory
from tests.cli.conftest import Command
from tests.long import long
from tests.test_readme import ROOT, block_after


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in virtual time in which packets overtake each other; its flows have 64 packets."""
    folder = tmp_path_factory.mktemp("run")
    api.run(
        scheme="spray",
        topology="leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
        workload="permutation:size=64KiB",
        fault="link-slow:link=leaf1-spine1,factor=0.2",
        target="virtual",
        out=folder,
    )
    return folder


def test_the_command(command: Command, run: Path) -> None:
    where = ("trace", "--run", str(run), "--flow", "1", "--psn", "7")
    result = command(*where)
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80
    assert "PSN 7" in result.out
    assert "in queues" in result.out
    assert "run again, with the same trace" in " ".join(result.out.split())
    history = msgspec.json.decode(command(*where, "--json").out, type=PacketHistory)
    assert history.trace_sha256 == json.loads((run / "summary.json").read_text())["trace_sha256"]
    assert history.psn == 7
    full = command(*where, "--full")
    assert "table " in full.out
    assert len(full.out) > len(result.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--flow", "99", "--psn", "1"], "has no flow 99; expected 1 to "),
        (["--flow", "1", "--psn", "64"], "flow 1 has no packet 64; expected 0 to 63"),
        (["--flow", "1", "--psn", "99999999999999999999"], "has no packet"),
        (["--flow", "1"], "give all of --run FOLDER, --flow N and --psn N"),
        (["--psn", "1"], "give all of"),
        (["--flow", "1", "--psn", "1", "h1", "h2"], "no SWITCH"),
        (["--flow", "1", "--psn", "1", "--all"], "no SWITCH"),
    ],
)
def test_bad_words(command: Command, run: Path, words: list[str], said: str) -> None:
    result = command("trace", "--run", str(run), *words)
    assert result.status == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert said in result.err


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"target": "native"}, 2, "only runs in virtual time can be repeated"),
        ({"trace_sha256": "0" * 64}, 1, "its specs now give another run"),
        ({"trace_sha256": "0" * 64, "p4_sha256": "0" * 64}, 1, "the P4 program has changed since"),
        ({"words": ""}, 2, "this key or trace_sha256 is missing"),
        ({"words": "--scheme 'ecmp"}, 2, "no options of a run"),
        ({"words": "--no-such-thing 1"}, 2, "not an option of a run"),
        ({"words": "--flows many"}, 2, "no options of a run"),
        ({"words": "--scheme ecmp --topology leaf-spine:leaves=2,spines=2 --seed 2 --target virtual"}, 2,
         "its flows differ from those of the specs"),
        ({"words": "--topology nowhere"}, 2, "words"),
        ({"format": 1}, 2, "run it again"),
    ],
)  # fmt: skip
def test_bad_runs(
    command: Command,
    run: Path,
    tmp_path: Path,
    changes: dict[str, object],
    status: int,
    said: str,
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | changes))
    result = command("trace", "--run", str(folder), "--flow", "1", "--psn", "1")
    assert result.status == status, result.err
    last = result.err.strip().splitlines()[-1]
    assert said in last
    assert "Traceback" not in result.err


def test_no_run(command: Command, run: Path, tmp_path: Path) -> None:
    result = command("trace", "--run", str(tmp_path), "--flow", "1", "--psn", "1")
    assert result.status == 2
    assert "expected the folder of a run" in result.err
    shutil.copy(run / "summary.json", tmp_path)
    result = command("trace", "--run", str(tmp_path), "--flow", "1", "--psn", "1")
    assert result.status == 2
    assert "flows.parquet" in result.err


@long
def test_the_story_in_the_docs(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/programs/packet-history.md: the same, character by character, on every machine."""
    page = (ROOT / "docs" / "programs" / "packet-history.md").read_text("utf-8")
    section = page.partition("## A packet of a finished run")[2]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for line in block_after(section, "```").replace("\\\n", " ").splitlines():
        result = command(*shlex.split(line)[1:])
        assert result.status == 0, result.err
    assert result.out == block_after(section, "```text")
