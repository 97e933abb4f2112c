# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run and write what they promise. Nothing here judges speed: that depends on the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.result import Result, table


def test_table_groups_and_verdicts() -> None:
    """A heading for each group; a goal is shown with whether it was met, on the side that counts."""
    text = table(
        [
            Result("speed", "fast", 6e6, "packets/s", goal=5e6),
            Result("speed", "slow", 4e6, "packets/s", goal=5e6),
            Result("size", "small", 0.04, "s", goal=0.05, better="less", note="cached"),
            Result("size", "plain", 12.5, "KiB"),
        ]
    )
    lines = text.splitlines()
    assert lines[0] == "speed"
    assert lines[1].split() == ["fast", "6,000,000", "packets/s", ">=", "5,000,000:", "yes"]
    assert lines[2].split() == ["slow", "4,000,000", "packets/s", ">=", "5,000,000:", "NO"]
    assert lines[4] == "size"
    assert lines[5].split() == ["small", "0.04", "s", "<=", "0.05:", "yes", "cached"]
    assert lines[6].split() == ["plain", "12.5", "KiB"]


@pytest.mark.parametrize(
    "name", ["pipeline", "core", "tables", "lookups", "footprint", "virtual", "virtual-full"]
)
def test_quick_run_writes_json(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each benchmark runs; its rows are in the table and in bench.json, with the machine they come from."""
    assert main(["--quick", "--only", name, "--out", str(tmp_path / "out")]) == 0
    document = json.loads((tmp_path / "out" / "bench.json").read_text("utf-8"))
    assert document["quick"] is True
    assert document["machine"]["cores"] >= 1
    assert document["results"]
    shown = capsys.readouterr().out
    for row in document["results"]:
        assert row["value"] > 0
        assert row["name"] in shown
        if row["runs"]:
            assert 0 < row["min"] <= row["value"] <= row["max"]


def test_pipeline_forwards_everything(tmp_path: Path) -> None:
    """No frame of the pipeline benchmark is lost, or it would measure drops."""
    assert main(["--quick", "--only", "pipeline", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "bench.json").read_text("utf-8"))["results"]
    assert all("100% forwarded" in row["note"] for row in rows)


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder should be: one line, exit 2."""
    (tmp_path / "out").write_text("", "utf-8")
    assert main(["--only", "pipeline", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("bench: ")
