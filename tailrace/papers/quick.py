# SPDX-License-Identifier: Apache-2.0
"""Quick verdicts on the claims of a figure, from runs at the small scale.

PASS: the claim holds. WARN: it is undecided, or the measured number differs in size only. FAIL: the
measurement contradicts the claim.

Some claims FAIL in small networks, or at every scale. quick.toml lists these, and the CPU time of the runs of
each figure; tests/papers/quick_reference.py writes it. Runs in virtual time repeat exactly: any other FAIL is
caused by a change of the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.papers.claims.claims import Verdict, even_of
from tailrace.papers.claims.kinds import BEYOND, FAIR, GOOD, NOT_MEASURED
from tailrace.papers.document import Document
from tailrace.papers.model import Claim, figure_of, paper_of
from tailrace.results.units import UNITS
from tailrace.spec.schema import convert, read_toml

SCALE = "small"
SEEDS = (1, 2, 3)
"""The fewest seeds with which rankings can be decided."""

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
KNOWN = "known FAIL"
FILE = Path(__file__).with_name("quick.toml")


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The CPU time in s of a figure's runs with SEEDS; the keys (`Row.key`) of claims that FAIL, and runs in
    which flows do not finish, as `Document.failed` names them.
    """

    cpu_s: Annotated[float, Meta(ge=0)] = 0.0
    fails: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """A claim of a figure in a case, and its quick verdict; `ours` is the measured value as text, `stored`
    the verdict of stored runs at the paper's scale.
    """

    figure: str
    claim: str
    case: str
    paper: str
    ours: str
    result: str
    stored: str = ""

    @property
    def key(self) -> str:
        """The claim and its case."""
        return f"{self.claim} [{self.case}]" if self.case else self.claim


def references() -> dict[str, Reference]:
    """The references of all figures by name; raises FileError if the file is invalid."""
    return {name: convert(values, Reference) for name, values in read_toml(FILE).items()}


def result_of(claim: Claim, verdict: Verdict) -> str:
    """PASS, WARN or FAIL."""
    if verdict.verdict in GOOD:
        return PASS
    if verdict.verdict in (*FAIR, NOT_MEASURED):
        return WARN
    assert verdict.ours is not None, "it was measured"
    times = claim.expectation.times(verdict.ours * UNITS[claim.unit].factor, even_of(claim))
    return WARN if verdict.verdict == BEYOND and times > 0 else FAIL


def rows_of(
    document: Document, claims: Sequence[Claim], known: Sequence[str], stored: Sequence[Document] = ()
) -> list[Row]:
    """A row for each claim of a figure in each case, in its order; `stored`: documents at paper scale."""
    by_text = {(claim.kind, claim.text, claim.expect): claim for claim in claims}
    large = {(page.name, each.text, each.case): each.verdict for page in stored for each in page.claims}
    rows = []
    for each in document.claims:
        result = result_of(by_text[each.kind, each.text, each.expect], each)
        verdict = large.get((document.name, each.text, each.case), "")
        row = Row(document.name, each.text, each.case, each.paper, each.shown, result, verdict)
        if result == FAIL and row.key in known:
            row = msgspec.structs.replace(row, result=KNOWN)
        rows.append(row)
    return rows


def joined(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of a table: one for all cases of a claim with the same verdict; one paper is not named."""
    shorten = figure_of if len({paper_of(row.figure) for row in rows}) == 1 else str
    for _, group in groupby(rows, lambda row: (row.figure, row.claim, row.paper, row.result)):
        same = list(group)
        case = same[0].case if len(same) == 1 else f"{len(same)} cases"
        ours = same[0].ours if len({row.ours for row in same}) == 1 else ""
        stored = ", ".join(dict.fromkeys(row.stored for row in same if row.stored))
        figure = shorten(same[0].figure)
        yield msgspec.structs.replace(same[0], figure=figure, case=case, ours=ours, stored=stored)
