# SPDX-License-Identifier: Apache-2.0
"""A figure or table of a paper as listings: what was measured, and each claim beside the paper's number."""

from __future__ import annotations

from tailrace.controller.listing.listing import Column, Listing, Row
from tailrace.experiments.paper.claims.claims import DIFFERS, HOLDS
from tailrace.experiments.paper.document import Document
from tailrace.experiments.paper.measure.metrics import metric, named
from tailrace.experiments.results.units import UNITS

_CLAIMS = (
    *(Column(name) for name in ("claim", "case")),
    *(Column(name) for name in ("paper", "ours")),
    Column("expected", rank=1),
    Column("verdict", styles={HOLDS: "green", DIFFERS: "yellow"}),
)


def measured_table(document: Document) -> Listing:
    """A row a case and scheme, a column a metric; where there is little room the last ones go first."""
    seeds = f", seeds {', '.join(map(str, document.seeds))}" if document.seeds else ""
    columns = [Column("case", key=True, grouped=True)] if len(document.cases) > 1 else []
    columns.append(Column("scheme", key=True))
    columns += [
        Column(name, title=named(name), show=UNITS[metric(name).unit].plain, rank=rank)
        for rank, name in enumerate(document.metrics)
    ]
    rows: list[Row] = []
    for cell in document.cells:
        label = f"{cell.label} ({cell.value})" if cell.value else cell.label
        rows.append({"case": cell.case, "scheme": label + (" *" if cell.note else ""), **cell.metrics})
    notes = dict.fromkeys(cell.note for cell in document.cells if cell.note)
    return Listing(
        document.name,
        tuple(columns),
        tuple(rows),
        title=f"{document.paper} {document.figure}: {document.title} ({document.scale} scale{seeds})",
        caption=("* " + "; ".join(notes),) if notes else (),
    )


def claims_table(document: Document) -> Listing:
    """A row a claim and case."""
    notes = explanations(document)
    rows = []
    for claim in document.claims:
        verdict = f"{claim.verdict} ({notes.index(claim.why) + 1})" if claim.why else claim.verdict
        texts = (claim.text, claim.case, claim.paper, claim.shown, claim.expect, verdict)
        rows.append(dict(zip((column.name for column in _CLAIMS), texts, strict=True)))
    return Listing("claims", _CLAIMS, tuple(rows))


def explanations(document: Document) -> list[str]:
    """What explains the claims that differ or could not be measured, once each; tables count them from 1."""
    return list(dict.fromkeys(claim.why for claim in document.claims if claim.why))
