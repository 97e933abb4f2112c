# SPDX-License-Identifier: Apache-2.0
"""A page of each paper, and README.md: what all of them say together, in numbers that the pages have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from tailrace.experiments.paper.claims.claims import headline, others, tally
from tailrace.experiments.paper.claims.kinds import BEYOND, NUMBER, RANKING, REVERSED
from tailrace.experiments.paper.document import Cost, Document
from tailrace.experiments.paper.model import names, paper_of
from tailrace.experiments.paper.show.page import cost_text, ratio_of, templates, write_page
from tailrace.words.errors import FileError

SUMMARY = "README.md"

BEFORE: Mapping[str, str] = {
    "flowcut": "9 numbers: 3 within 15 %, 3 within 1.5, 3 beyond; 18 rankings: 18 undecided",
    "hf2t": "19 numbers: 1 within 15 %, 4 within 1.5, 14 beyond; 10 rankings: 10 undecided",
    "rlb": "48 numbers: 1 within 15 %, 5 within 1.5, 42 beyond; 16 rankings: 16 undecided",
    "spritz": "21 numbers: 7 within 15 %, 8 within 1.5, 6 beyond; 29 rankings: 29 undecided",
}
"""How the claims of a paper came out in November 2026, with one seed to three."""

CITED = (
    *(name for name in names() if paper_of(name) == "common"),
    "hf2t_networks",
)
"""The figures without which there are no conclusions."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is told of the page of a paper."""

    stem: str
    paper: str
    headline: str
    others: str
    costs: list[Cost]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why `claims` claims of a paper's figures differ."""

    paper: str
    why: str
    figures: list[str]
    claims: int


def write_pages(documents: Sequence[Document], out: Path, folder: Path) -> None:
    """Writes the page of each paper, and README.md.

    Args:
        documents: what came of the figures, those of a paper together.
        out: the folder in which their results are, one folder a figure, with the runs beside them.
        folder: of the pages.

    Raises:
        FileError: a result is not there, or a page cannot be written.
    """
    for stem, those in groupby(documents, lambda one: paper_of(one.name)):
        write_page(list(those), out, folder / f"{stem}.md")
    page = folder / SUMMARY
    try:
        page.write_text(summary_text(documents), "utf-8")
    except OSError as error:
        raise FileError(page, "", error.strerror or str(error)) from error


def summary_text(documents: Sequence[Document]) -> str:
    """README.md, for which `shown_by` of each figure is enough; those of a paper together."""
    pages = [
        Page(
            stem,
            those[0].paper,
            headline(tally(document.claims for document in those)),
            others(tally(document.claims for document in those)),
            _costs(those),
        )
        for stem, group in groupby(documents, lambda one: paper_of(one.name))
        for those in [list(group)]
    ]
    return (
        templates()
        .get_template("summary.md.j2")
        .render(
            scale=documents[0].scale,
            pages=pages,
            before=BEFORE if documents[0].scale == "paper" else {},
            causes=list(_causes(documents)),
            cost=cost_text,
            costs=_costs(documents),
            conclusions=documents[0].scale == "paper" and set(CITED) <= {one.name for one in documents},
            ratio=partial(ratio_of, documents),
        )
    )


def _costs(documents: Iterable[Document]) -> list[Cost]:
    return [document.cost for document in documents if document.cost]


def _causes(documents: Iterable[Document]) -> Iterator[Cause]:
    """Why numbers are beyond and rankings reversed, in the order of the figures, a cause once a paper."""
    found: dict[tuple[str, str], list[str]] = {}
    for document in documents:
        for claim in document.claims:
            if claim.counts and (claim.kind, claim.verdict) in ((NUMBER, BEYOND), (RANKING, REVERSED)):
                found.setdefault((document.paper, claim.why), []).append(document.figure)
    for (paper, why), figures in found.items():
        yield Cause(paper, why, list(dict.fromkeys(figures)), len(figures))
