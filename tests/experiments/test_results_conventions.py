# SPDX-License-Identifier: Apache-2.0
"""Conventions of folders, tables and labels of results."""

from __future__ import annotations

import contextlib
import importlib
import io
from pathlib import Path
from typing import Any

import polars
import pytest

import tailrace
from tailrace.cli.results_command import OVER_SEEDS
from tailrace.tables.listing import Listing
from tailrace.tables.table import TextTable, unstyled
from tests.forked import command

SMALL: tuple[str, ...] = (
    *("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps"),
    *("--workload", "permutation:size=16KiB,peers=remote"),
)
KEYS: dict[str, Any] = {
    "topology": SMALL[3],
    "workload": SMALL[5],
    "target": "virtual",
}


def test_an_old_folder_is_not_mixed_with_a_new_run(tmp_path: Path) -> None:
    """It is moved: what lies in the folder is of one command. The same command again replaces its own run."""
    words = ("run", "--scheme", "ecmp", *SMALL, "--out", "out", "--seed")
    assert command((*words, "1..2"), tmp_path).returncode == 0
    assert (tmp_path / "out" / "results.json").exists()
    done = command((*words, "3"), tmp_path)
    assert done.returncode == 0
    assert "out: results of an earlier command are in out/earlier/1 now (runs: 2)" in done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "summary.json",
        "flows.parquet",
        "earlier",
    }
    assert tailrace.open_results(tmp_path / "out" / "earlier" / "1").complete
    (tmp_path / "out" / "longest-queues.pdf").touch()
    assert "earlier" not in command((*words, "3"), tmp_path).stderr
    assert command((*words, "4"), tmp_path).returncode == 0
    assert tailrace.open_result(tmp_path / "out" / "earlier" / "2").summary.seed == 3
    assert not (tmp_path / "out" / "longest-queues.pdf").exists()


def test_rows_that_differ_look_different() -> None:
    """Two groups of stored runs that differ in a setting alone look different in a narrow terminal."""
    same: dict[str, Any] = {"scheme": "ecmp", "topology": SMALL[3], "workload": SMALL[5], "faults": ""}
    measured: dict[str, Any] = {"seeds": 1, "flows": 4, "fct_mean": 2e4, "slowdown_p99": 1.5}
    rows = tuple({**same, **measured, "setting": f"transport={name}"} for name in ("gbn", "dctcp"))
    shown = unstyled(TextTable(Listing("runs", OVER_SEEDS, rows), 80).lines())
    assert "gbn" in shown
    assert "dctcp" in shown


def test_one_bad_file_does_not_keep_the_report_from_the_others(tmp_path: Path) -> None:
    words = ("compare", "--scheme", "ecmp,spray", *SMALL, "--out", "out/all")
    assert command(words, tmp_path).returncode == 0
    assert command(("run", "--scheme", "letflow", *SMALL, "--out", "out/bad"), tmp_path).returncode == 0
    (tmp_path / "out" / "bad" / "summary.json").write_text("{", "utf-8")
    done = command(("report", "out"), tmp_path)
    assert "bad/summary.json" in done.stderr
    page = tmp_path / "out" / "report.html"
    assert page.exists()
    assert "spray" in page.read_text("utf-8")


def test_flows_are_what_a_data_frame_is_made_of() -> None:
    """`pandas.DataFrame` takes whatever can be iterated over for a list of rows, and rows that are mappings have columns.

    Otherwise it takes mappings of columns and arrays only.
    """
    done = tailrace.compare(None, ["ecmp", "spray"], **KEYS)
    flows: tuple[Any, ...] = (done.flows, done.results[0].flows)
    for table in flows:
        assert hasattr(table, "__iter__")
        assert [dict(row) for row in table] == polars.DataFrame(table).to_dicts()
    with contextlib.suppress(ImportError):
        pandas = importlib.import_module("pandas")
        for table in flows:
            frame = pandas.DataFrame(table)
            assert list(frame.columns) == table.column_names
            assert len(frame) == table.num_rows


def test_progress_tells_that_figures_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bars stand at 100 % by then, and nothing seems to happen."""
    progress: list[str] = []
    stream = io.StringIO()
    drawn = "tailrace.report.figures.beside.draw_comparison"
    monkeypatch.setattr(drawn, lambda *_words: progress.append(stream.getvalue()))
    tailrace.compare(None, ["ecmp", "spray"], out=tmp_path / "out", progress=stream, **KEYS)
    assert len(progress) == 1
    assert "figure" in progress[0]
