# SPDX-License-Identifier: Apache-2.0
"""`tailrace coverage` over the files that switches write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.switch.compiler import load_program
from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.trace.coverage import Coverage, EntryCoverage, PointCount, coverage_of, write
from tests.cli.conftest import Command

BUILT = Path("tests/programs/build")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files: basic_l3, whose every second use was made, with two entries; and the same once more."""
    loaded = load_program((BUILT / "basic_l3.json").read_bytes())
    n = len(CoveragePoints(loaded.model).all)
    counts = [number % 2 for number in range(n)]
    write(
        [
            coverage_of(
                loaded, counts, [EntryCoverage("route", "a", True), EntryCoverage("route", "b", False)]
            )
        ],
        tmp_path / "a.json",
    )
    write([coverage_of(loaded, counts)], tmp_path / "b.json")
    return tmp_path


def test_how_much_was_used(command: Command, folder: Path) -> None:
    rows = {row["what"]: row for row in command("coverage", str(folder), "-o", "json").rows}
    assert {row["program"] for row in rows.values()} == {"basic_l3.p4"}
    assert (rows["entries at the end"]["used"], rows["entries at the end"]["all"]) == (1, 2)
    kinds = [row for what, row in rows.items() if what not in ("lines", "entries at the end")]
    n = sum(row["all"] for row in kinds)
    assert sum(row["used"] for row in kinds) == n // 2
    assert 0 < rows["lines"]["used"] <= rows["lines"]["all"]


def test_what_was_not(command: Command, folder: Path) -> None:
    rows = command("coverage", str(folder / "a.json"), "--unused", "-o", "json").rows
    assert [row["what"] for row in rows if row["kind"] == "entry"] == ["b"]
    assert any(row["place"].startswith("basic_l3.p4:") or "basic_l3.p4:" in row["place"] for row in rows)


def test_lcov(command: Command, folder: Path) -> None:
    assert command("coverage", str(folder), "--lcov", str(folder / "out.info")).status == 0
    lines = (folder / "out.info").read_text().splitlines()
    assert lines[0] == "TN:"
    assert lines[-1] == "end_of_record"
    # twice the same file: what was made, was made twice
    assert {int(line.split(",")[1]) for line in lines if line.startswith("DA:")} <= {0, 2}


def test_bad_files(command: Command, folder: Path) -> None:
    (folder / "c.json").write_text(json.dumps([{"program": "x"}]))
    result = command("coverage", str(folder))
    assert result.status == 2
    assert "c.json: not a coverage file" in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert command("coverage", str(folder / "missing.json")).status == 2
    bad = command("coverage", str(folder / "a.json"), "--lcov", str(folder / "no" / "out.info"))
    assert bad.status == 2
    assert "No such file" in bad.err


def test_names_of_sources_make_no_records(command: Command, tmp_path: Path) -> None:
    """A program says what its source is called, and an end of line in that begins no line."""
    use = PointCount("state", "start", "", "a.p4\nend_of_record\nTN:\nSF:b.p4\r\x1b", 1, 1)
    write([Coverage("a", "0" * 64, (use,))], tmp_path / "a.json")
    info = tmp_path / "out.info"
    assert command("coverage", str(tmp_path), "--lcov", str(info)).status == 0
    assert info.read_text().count("\n") == len(info.read_text().splitlines()) == 6
    assert "SF:a.p4\\nend_of_record\\nTN:\\nSF:b.p4\\r\\x1b\n" in info.read_text()


def test_nothing_unused_is_said_so(command: Command, folder: Path) -> None:
    """And so is a file without programs."""
    loaded = load_program((BUILT / "basic_l3.json").read_bytes())
    used = [1] * len(CoveragePoints(loaded.model).all)
    write([coverage_of(loaded, used, [EntryCoverage("route", "a", True)])], folder / "all.json")
    write([], folder / "none.json")
    assert (
        command("coverage", str(folder / "all.json"), "--unused").err == "packets have executed everything\n"
    )
    for words in ((), ("--unused",)):
        assert (
            command("coverage", str(folder / "none.json"), *words).err
            == "the files contain no coverage of a program\n"
        )
