# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run and write what they promise. Nothing here judges speed: that depends on the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checks.bench.__main__ import main
from checks.bench.result import WIDTH
from tests.long import more


@pytest.mark.parametrize(
    "name",
    ["pipeline", "tables", "virtual", "htsim", *more("footprint", "virtual-full")],
)
def test_quick_run_writes_json(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each benchmark runs; its rows are in the table and in bench.json, with the machine they come from."""
    assert main(["--quick", "--only", name, "--out", str(tmp_path / "out")]) == 0
    document = json.loads((tmp_path / "out" / "bench.json").read_text("utf-8"))
    assert document["quick"] is True
    assert document["machine"]["cores"] >= 1
    assert document["results"]
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= WIDTH
    for row in document["results"]:
        assert row["value"] > 0 or "traffic" in row["name"]  # a difference, which noise may make nothing
        assert row["name"] in shown
        assert row["quiet"] in (True, False)
        if row["runs"]:
            assert row["min"] <= row["value"] <= row["max"]
        # no frame of the pipeline benchmark is lost, or it would measure drops
        assert name != "pipeline" or "100% forwarded" in row["note"]
