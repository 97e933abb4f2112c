# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace --save` and `--replay`: through files, on a switch of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.bmv2.process import available
from tests.cli.conftest import Command
from tests.cli.test_trace import WORDS


@pytest.fixture
def saved(tailrace: Command, tmp_path: Path) -> Path:
    """A packet through a leaf with Flowcut."""
    path = tmp_path / "trace.json"
    result = tailrace("trace", "leaf1", "--port", "1", WORDS, "--save", str(path))
    assert result.status == 0, result.err
    assert "sent by port " in result.out
    return path


def test_saved_and_repeated(command: Command, saved: Path, tmp_path: Path) -> None:
    """The same comes of it on a switch with what was saved alone; and not where an entry is missing."""
    result = command("trace", "--replay", str(saved))
    assert result.status == 0, result.err
    assert result.err == "tailrace: as saved\n"
    document = json.loads(saved.read_text())
    frame = document["expected"]["sent"][0]["frame"]
    assert f"sent by port {document['expected']['sent'][0]['port']}: {frame[:100]}" in result.out
    head, comment, tail = document["write_request"].partition("# dst=10.0.2.0/24 of table ipv4_routes\n")
    assert comment
    document["write_request"] = head + "#" + "#".join(tail.partition("#")[2:])
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document))
    result = command("trace", "--replay", str(other))
    assert result.status == 1
    assert "missing: port" in result.err
    assert result.err.splitlines()[-1].startswith("tailrace: not as saved")


def test_exported(command: Command, saved: Path, tmp_path: Path) -> None:
    """As a test for PTF or in STF; other names are refused."""
    for name in ("t.py", "t.stf"):
        result = command("trace", "--replay", str(saved), "--export", str(tmp_path / name))
        assert (result.status, result.out, result.err) == (0, "", "")
    compile((tmp_path / "t.py").read_text(), "t.py", "exec")
    assert "ipv4_routes" in (tmp_path / "t.stf").read_text()
    result = command("trace", "--replay", str(saved), "--export", str(tmp_path / "t.txt"))
    assert result.status == 2
    assert "expected a name that ends in .stf or .py" in result.err
    assert len(result.err.splitlines()) == 1
    assert not (tmp_path / "t.txt").exists()


def test_a_line_feed_at_the_end_of_a_frame(command: Command, saved: Path, tmp_path: Path) -> None:
    """It is refused: a test in STF would have a torn line."""
    document = json.loads(saved.read_text())
    document["expected"]["sent"][0]["frame"] += "\n"
    saved.write_text(json.dumps(document))
    result = command("trace", "--replay", str(saved), "--export", str(tmp_path / "t.stf"))
    assert result.status == 2
    key = "expected.sent[0].frame"
    assert result.err.startswith(f"tailrace: {saved}: {key}: expected a frame in base 16")
    assert len(result.err.splitlines()) == 1
    assert not (tmp_path / "t.stf").exists()


@pytest.mark.skipif(not available(), reason="simple_switch_grpc is not on PATH")
def test_on_bmv2(command: Command, tailrace: Command, tmp_path: Path) -> None:
    """A packet that no route is for: Flowcut's time stamps do not matter to it."""
    path = tmp_path / "trace.json"
    result = tailrace(
        "trace", "leaf1", "--port", "1", WORDS.replace("10.0.2.2", "10.9.9.9"), "--save", str(path)
    )
    assert (
        f"{path}: BMv2 may treat the packet differently with the packet: its program reads the time"
        in result.err
    )
    result = command("trace", "--replay", str(path), "--target", "bmv2")
    assert (result.status, result.out, result.err) == (0, "nothing is sent\n", "tailrace: as saved\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "expected SWITCH --port N PACKET"),
        (("leaf1",), "expected SWITCH --port N PACKET"),
        (("h1", "h2", "--save", "x.json"), "--save: only for a switch, with --port N"),
        (("leaf1", "--port", "1", "00", "--all", "--save", "x.json"), "--save: only for a switch"),
        (("leaf1", "--port", "1", "00", "--target", "bmv2"), "with --replay FILE"),
        (("leaf1", "--port", "1", "00", "--export", "x.stf"), "with --replay FILE"),
        (("leaf1", "--replay", "x.json"), "--replay: the file has switch, port and packet"),
        (("--replay", "missing.json"), "missing.json: No such file"),
        (("leaf1", "--port", "1", "00", "--save", "/missing/x.json"), "/missing/x.json: No such file"),
    ],
)
def test_words_that_do_not_fit(tailrace: Command, words: tuple[str, ...], says: str) -> None:
    result = tailrace("trace", *words)
    assert result.status == 2
    assert says in result.err
    assert len(result.err.splitlines()) == 1
