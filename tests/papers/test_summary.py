# SPDX-License-Identifier: Apache-2.0
"""A folder of pages, and what README.md says of all of them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tailrace.cli.main import main
from tailrace.papers.claims.claims import UNEXPLAINED, headline, tally
from tailrace.papers.document import read_document
from tailrace.papers.model import names
from tailrace.report.paper.page import page_text
from tailrace.report.paper.summary import SUMMARY, documents_in, summary_text
from tailrace.report.paper.table import claims_table

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def test_a_folder_gets_a_page_of_each_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And README.md, which counts what they count; other kinds of files are one page, as ever."""
    out, folder = str(tmp_path / "out"), tmp_path / "pages"
    wanted = "flowcut_table3,spritz_fig3,spritz_table1"
    assert main(["paper", wanted, "--out", out, "--page", str(folder)]) == 0
    assert {path.name for path in folder.glob("*.md")} == {"flowcut.md", "spritz.md", SUMMARY}
    documents = documents_in(folder, names())
    assert [document.name for document in documents] == wanted.split(",")
    assert (folder / SUMMARY).read_text("utf-8") == summary_text(documents)
    for stem, those in (("flowcut", documents[:1]), ("spritz", documents[1:])):
        assert (folder / f"{stem}.md").read_text("utf-8") == page_text(those, folder / stem)
    capsys.readouterr()
    assert main(["paper", wanted, "--out", out, "--page", str(tmp_path / "one.md")]) == 2
    assert "--page" in capsys.readouterr().err
    assert not (tmp_path / "one.md").exists()


def test_the_page_of_one_paper_leaves_the_others_in_the_summary(tmp_path: Path) -> None:
    """Made one after the other, pages are summed up as if they had been made together."""
    out, folder = tmp_path / "out", tmp_path / "pages"
    for wanted in ("spritz_fig3", "flowcut_table3"):
        assert main(["paper", wanted, "--out", str(out), "--page", str(folder)]) == 0
    assert (
        main(["paper", "flowcut_table3,spritz_fig3", "--out", str(out), "--page", str(tmp_path / "both")])
        == 0
    )
    assert (folder / SUMMARY).read_bytes() == (tmp_path / "both" / SUMMARY).read_bytes()
    (folder / "spritz" / "spritz_fig3.json").write_text("no document")
    assert main(["paper", "flowcut_table3", "--out", str(out), "--page", str(folder)]) == 2


def test_every_difference_has_its_cause() -> None:
    """Each number beyond and each ranking reversed says why; the summary counts the claims of each page."""
    documents = documents_in(RESULTS, names())
    text = summary_text(documents)
    for document in documents:
        for claim in document.claims:
            if claim.counts and (claim.kind, claim.verdict) in (
                ("number", "beyond"),
                ("ranking", "reversed"),
            ):
                assert claim.why not in ("", UNEXPLAINED), (document.name, claim.text)
        assert headline(tally(each.claims for each in documents if each.paper == document.paper)) in text


def test_the_projects_summary_says_what_the_pages_say() -> None:
    """README.md of the results is made of the pages beside it."""
    assert (RESULTS / SUMMARY).read_text("utf-8") == summary_text(documents_in(RESULTS, names()))


@pytest.mark.parametrize("page", sorted(RESULTS.glob("*.md")), ids=lambda page: page.stem)
def test_tables_have_as_many_cells_in_each_row(page: Path) -> None:
    """Else they are shown as plain text."""
    check_tables(page.read_text("utf-8"))


def test_a_table_with_what_the_authors_measured_again() -> None:
    """Has a column more."""
    document = read_document(RESULTS / "rlb" / "rlb_fig4.json")
    claims = (msgspec.structs.replace(document.claims[0], rerun="70 %"), *document.claims[1:])
    table = claims_table(msgspec.structs.replace(document, claims=claims))
    assert "rerun" in [column.name for column in table.columns]
    assert table.rows[0]["rerun"] == "70 %"


def check_tables(text: str) -> None:
    """All rows of a table have as many cells as its head."""
    for table in re.findall(r"(?m)(?:^\|.*\n)+", text + "\n"):
        counts = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(counts) == 1, table[:300]
