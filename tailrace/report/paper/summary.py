# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each paper, and README.md, which summarises the pages of a folder and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from tailrace.papers.document import Document, read_document
from tailrace.papers.model import names, paper_of
from tailrace.report.paper.page import CITATIONS, FUNCTIONS, NUMBERS, write_page
from tailrace.report.render import templates
from tailrace.spec.atomic import write_output

SUMMARY = "README.md"

BEFORE: Mapping[str, str] = {
    "flowcut": "9 numbers: 3 within 15 %, 3 within 1.5, 3 beyond; 18 rankings: 18 undecided",
    "hf2t": "19 numbers: 1 within 15 %, 4 within 1.5, 14 beyond; 10 rankings: 10 undecided",
    "rlb": "48 numbers: 1 within 15 %, 5 within 1.5, 42 beyond; 16 rankings: 16 undecided",
    "spritz": "21 numbers: 7 within 15 %, 8 within 1.5, 6 beyond; 29 rankings: 29 undecided",
}
"""The verdicts on each paper's claims in November 2026, when runs had one to three seeds."""

_CITED = (
    "common_1_all",
    "common_2_dcqcn",
    "common_4_any_order",
    "common_5_faults",
    "common_6_networks",
    "common_8_steady",
    "common_9_warm_up",
    "conclusions_01_order",
    "conclusions_02_packets",
    "conclusions_03_transport",
    "conclusions_06_slow",
    "conclusions_09_dragonfly",
    "conclusions_10_senders",
    "flowcut_buffers",
    "flowcut_table4",
    "flowcut_throttling",
    "hf2t_paths",
    "rlb_causes",
    "rlb_map",
    "spritz_fig6",
    "spritz_fig7",
    "spritz_fig9",
)
"""The figures that the conclusions cite; if one of them is missing, the summary has no conclusions."""


def write_pages(documents: Sequence[Document], out: Path, folder: Path) -> None:
    """Writes the page of each paper, and README.md about these pages and those already in the folder.

    Args:
        documents: the results of the figures at one scale, grouped by paper.
        out: the folder of the results, with one folder per figure; the folder of runs has the same parent.
        folder: the folder of the pages.

    Raises:
        FileError: a result is missing or invalid, or a page cannot be written.
    """
    for stem, of_paper in _by_paper(documents):
        write_page(of_paper, out, folder / f"{stem}.md")
    scale = documents[0].scale
    shown = [each for each in documents_in(folder, names()) if each.scale == scale]
    write_output(folder / SUMMARY, summary_text(shown))


def documents_in(folder: Path, figures: Iterable[str]) -> list[Document]:
    """The documents of those of these figures that pages of a folder have.

    Raises:
        FileError: the numbers of a figure cannot be read.
    """
    paths = [folder / paper_of(name) / (name + NUMBERS) for name in figures]
    return [read_document(path) for path in paths if path.exists()]


def summary_text(documents: Sequence[Document]) -> str:
    """The text of README.md, from documents as `stored_part` returns them, grouped by paper."""
    at_paper_scale = documents[0].scale == "paper"
    shown = {document.name for document in documents}
    values = {
        "scale": documents[0].scale,
        "documents": documents,
        "pages": list(_by_paper(documents)),
        "before": BEFORE if at_paper_scale else {},
        "conclusions": at_paper_scale and shown.issuperset(_CITED),
    } | {name: partial(function, documents) for name, function in CITATIONS.items()}
    return templates(FUNCTIONS).get_template("paper/summary.md.j2").render(values)


def _by_paper(documents: Iterable[Document]) -> Iterator[tuple[str, list[Document]]]:
    for stem, of_paper in groupby(documents, lambda document: paper_of(document.name)):
        yield stem, list(of_paper)
