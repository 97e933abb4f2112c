# SPDX-License-Identifier: Apache-2.0
"""The page of a paper's results: what it says is what was measured, and its rows can be run again."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import polars
import pytest

from tailrace.cli.main import main
from tailrace.experiments.plan.experiment_file import read_option_string
from tailrace.papers.claims.claims import headline, tally
from tailrace.papers.document import Document, read_document
from tailrace.papers.model import LINES
from tailrace.report.paper.page import page_text, write_page
from tailrace.report.paper.summary import SUMMARY
from tailrace.spec.errors import FileError
from tests.full_disk import small_files
from tests.long import more

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of one figure at the small scale."""
    folder = tmp_path_factory.mktemp("page")
    page = folder / "docs" / "flowcut.md"
    assert main(["paper", "flowcut_table4", "--out", str(folder / "out"), "--page", str(page)]) == 0
    return page


def document_of(page: Path) -> Document:
    return read_document(page.parent.parent / "out" / "small" / "flowcut_table4" / "result.json")


def test_the_page_has_the_headline_and_the_data(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its links lead to files; `tailrace results` shows every number and claim of them."""
    text, document = written.read_text(), document_of(written)
    assert f"**{headline(tally([document.claims]))}.**" in text
    assert "`tailrace paper flowcut_table4 --scale small --page FILE`" in text
    assert "Not on this page: Buffers, Extensions, Fig. 1, Fig. 4-5, Fig. 7," in text
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) == 4, "a picture, its file, the data and the hashes"
    assert all((written.parent / link).is_file() for link in links)
    capsys.readouterr()
    assert main(["results", "flowcut_table4", "--store", str(written.parent)]) == 0
    table = capsys.readouterr().out
    for cell in document.cells:
        assert re.search(rf"{re.escape(cell.label)}\b", table), cell
    for claim in document.claims:
        assert claim.text in table and claim.shown in table and claim.why in table, claim


def test_claims_of_a_folder_of_pages(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Filtered and sorted, for people and as JSON; mistakes are one line."""
    document, store = document_of(written), ["--store", str(written.parent)]
    capsys.readouterr()
    assert main(["results", "claims", "flowcut", *store, "--json", "--where", "kind == number"]) == 0
    claims = json.loads(capsys.readouterr().out)
    numbers = [claim for claim in document.claims if claim.kind == "number"]
    assert [(row["claim"], row["verdict"], row["why"]) for row in claims] == [
        (claim.text, claim.verdict, claim.why) for claim in numbers
    ]
    assert [row["measured"] for row in claims] == [claim.ours for claim in numbers]
    for words, problem in (
        (["spritz"], "has no results of spritz"),
        (["claims", "seed=1"], "expected either figures and `claims`, or KEY=SPEC of runs"),
        (["nothing"], "paper 'nothing' is not known"),
    ):
        assert main(["results", *words, *store]) == 2
        assert problem in capsys.readouterr().err


def test_a_row_can_be_run_again(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a row give the hash that stands beside them."""
    rows = recorded(written)
    assert len(rows) == sum(len(cell.runs) for cell in document_of(written).cells)
    capsys.readouterr()
    assert trace_of(rows[-1]["words"], tmp_path / "again", capsys) == rows[-1]["trace_sha256"]


def trace_of(words: str, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The hash of a run of the words of a row."""
    assert main(["run", *shlex.split(words), "--json", "--out", str(out)]) in (0, 1)
    sha256: str = json.loads(capsys.readouterr().out)["trace_sha256"]
    return sha256


def recorded(page: Path) -> list[dict[str, str]]:
    """The runs of a page."""
    return polars.read_parquet(page.with_suffix("") / "traces.parquet").to_dicts()


PAGES = sorted(path for path in RESULTS.glob("*.md") if path.name != SUMMARY)
AGAIN = [
    ("rlb", "Fig. 14", "drill"),
    *more(("spritz", "Table III", "valiant"), ("hf2t", "Table 1", "RDMA")),
]
"""Rows of the pages that take seconds to run again; `make test-all` has those that take a minute, too."""


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem not in ("beside", "collectives", "conweave", "htsim", "reps")],
    ids=lambda page: page.stem,
)
def test_words_of_a_row_decide_its_hash(page: Path) -> None:
    """No two rows of a page have the same words and another hash, and every row has both."""
    rows = recorded(page)
    assert rows
    hashes = {row["words"]: row["trace_sha256"] for row in rows}
    assert [row for row in rows if row["trace_sha256"] != hashes[row["words"]]] == []
    assert all(words and len(sha256) == 64 for words, sha256 in hashes.items())
    for row in rows[:: len(rows) // 20 or 1]:
        assert read_option_string(row["words"]).option_string == row["words"]


@pytest.mark.parametrize(("page", "figure", "scheme"), AGAIN)
def test_a_row_of_a_page_can_be_run_again(
    page: str, figure: str, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its words give its hash, months and machines later."""
    rows = recorded(RESULTS / f"{page}.md")
    row = next(row for row in rows if (row["figure"], row["scheme"]) == (figure, scheme))
    capsys.readouterr()
    assert trace_of(row["words"], tmp_path, capsys) == row["trace_sha256"]


def test_a_full_disk_leaves_the_page_as_it_was(written: Path) -> None:
    """The line names what could not be written, and nothing half-written is left."""
    files = {path: path.read_bytes() for path in written.parent.rglob("*") if path.is_file()}
    with small_files(500), pytest.raises(FileError) as caught:
        write_page([document_of(written)], written.parents[1] / "out" / "small", written)
    assert str(caught.value).startswith(f"{written.with_suffix('')}/flowcut_table4.")
    assert str(caught.value).endswith("File too large")
    assert {path: path.read_bytes() for path in written.parent.rglob("*") if path.is_file()} == files


def test_numbers_stand_beside_the_picture(written: Path) -> None:
    """All that the page shows is in its JSON, exactly as measured; a line a cell."""
    path = written.with_suffix("") / "flowcut_table4.json"
    kept, document = read_document(path), document_of(written)
    assert page_text([kept], written.with_suffix("")) == written.read_text("utf-8")
    assert [cell.metrics for cell in kept.cells] == [
        {name: cell.metrics[name] for name in document.metrics if name in cell.metrics}
        for cell in document.cells
    ]
    assert kept.claims == document.claims
    assert kept.curves == document.curves
    text = path.read_text("utf-8")
    assert '"runs":[]' in text and "/" + document.cells[0].runs[0] not in text
    assert sum(line.startswith('  {"case":') for line in text.splitlines()) == len(document.cells)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_of_the_project_say_what_their_numbers_say(page: Path) -> None:
    """The numbers in its text are those of the data, and a reader finishes it."""
    text, folder = page.read_text("utf-8"), page.with_suffix("")
    names = re.findall(r'<a id="(\w+)"></a>', text)
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.json"))
    documents = [read_document(folder / f"{name}.json") for name in names]
    assert text == page_text(documents, folder)
    words = [word for word in text.split() if any(map(str.isalnum, word))]  # without a table's rules
    assert len(words) <= 800
    assert text.count("](") and text.count("![") <= 4
    assert {path.stem for path in folder.glob("*.svg")} <= set(names)
    lines = ("memory", "endpoints", *LINES)
    drawn = {d.name for d in documents if d.chart in lines}
    searched = {d.name for d in documents if any(cell.value for cell in d.cells)}
    assert drawn <= {d.name for d in documents if d.curves} <= drawn | searched


def test_figures_as_data_are_one_table_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each cell of all figures, in base units, for programs: one JSON document, or one CSV."""
    documents = [read_document(RESULTS / "rlb" / f"{name}.json") for name in ("rlb_fig3", "rlb_fig7")]
    words = ["results", *(document.name for document in documents)]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    cells = [(document.name, cell) for document in documents for cell in document.cells]
    assert [(row["figure"], row["case"], row["scheme"]) for row in rows] == [
        (name, cell.case, cell.label) for name, cell in cells
    ]
    for row, (_, cell) in zip(rows, cells, strict=True):
        for name in documents[0].metrics:
            low, high = cell.intervals.get(name, (None, None))
            assert [row[name], row[f"{name}_low"], row[f"{name}_high"]] == [cell.metrics.get(name), low, high]
    assert main([*words, "-o", "jsonl"]) == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == rows
    assert main([*words, "-o", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [list(row) for row in table] == [list(row) for row in rows]
    pairs = zip(table, rows, strict=True)
    of_first = [(float(row["fct_mean"]), other["fct_mean"]) for row, other in pairs if row["fct_mean"]]
    assert all(shown == pytest.approx(value, rel=1e-3) for shown, value in of_first)
    assert len(of_first) == len(documents[0].cells)
