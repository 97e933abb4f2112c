# SPDX-License-Identifier: Apache-2.0
"""The page of a paper's results: what it says is what was measured, and its rows can be run again."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.experiments.paper.claims.claims import HOLDS
from tailrace.experiments.paper.document import Document, read_document


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of one figure at the small scale."""
    folder = tmp_path_factory.mktemp("page")
    page = folder / "docs" / "one.md"
    assert main(["paper", "flowcut_fig12", "--out", str(folder / "out"), "--page", str(page)]) == 0
    return page


def document_of(page: Path) -> Document:
    return read_document(page.parent.parent / "out" / "small" / "flowcut_fig12" / "result.json")


def test_the_page_holds_every_number(written: Path) -> None:
    """A row a cell, a row a claim with its verdict, and links to files that are there."""
    text, document = written.read_text(), document_of(written)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    for cell in document.cells:
        assert any(f"| {cell.case} | {cell.label}" in line for line in tables), cell
    for claim in document.claims:
        row = f"| {claim.text} | {claim.case} | {claim.paper} | {claim.shown} | {claim.expect} |"
        assert any(line.startswith(row) and claim.verdict in line for line in tables), claim
        if claim.why:
            (number,) = re.findall(rf"(?m)^\((\d+)\) {re.escape(claim.why)}$", text)
            assert any(line.startswith(row) and line.endswith(f" ({number}) |") for line in tables), claim
    held = sum(claim.verdict == HOLDS for claim in document.claims)
    assert f"| {held} of {len(document.claims)} |" in text
    assert "`tailrace paper flowcut_fig12 --scale small --page FILE`" in text
    assert "Not on this page: Fig. 1, Fig. 4-5, Fig. 7," in text
    for text_ in (*document.assumptions, *document.reductions):
        assert text_ in text
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert all((written.parent / link).is_file() for link in links)


def test_a_row_can_be_run_again(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a row give the hash that stands beside them."""
    with (written.with_suffix("") / "traces.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(cell.runs) for cell in document_of(written).cells)
    row = rows[-1]
    setting = document_of(written).setting
    experiment = tmp_path / "again.toml"
    words = {"scheme": row["words"], "topology": row["topology"], "workload": row["workload"]}
    words |= {key: setting[key] for key in ("target", "transport", "window", "mtu")}
    lines = [f"{key} = {json.dumps(value)}" for key, value in words.items()]
    lines += [f"reorder = {setting['reorder']}", f"seed = {row['seed']}"]
    experiment.write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert main(["run", str(experiment), "--json", "--out", str(tmp_path / "again")]) == 0
    assert json.loads(capsys.readouterr().out)["trace_sha256"] == row["trace_sha256"]


def test_a_page_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that cannot be written is one line."""
    target = tmp_path / "taken"
    target.write_text("a file, no folder")
    assert main(["paper", "flowcut_table3", "--out", str(tmp_path), "--page", str(target / "x.md")]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert str(target) in error
    assert "Traceback" not in error
