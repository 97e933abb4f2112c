# SPDX-License-Identifier: Apache-2.0
"""A figure or table of a paper on a terminal: what was measured, and each claim beside the paper's number."""

from __future__ import annotations

from rich.table import Table

from tailrace.experiments.paper.claims.claims import DIFFERS, HOLDS
from tailrace.experiments.paper.document import Document
from tailrace.experiments.paper.measure.metrics import metric, named
from tailrace.experiments.results.units import UNITS

NOT_MEASURED = "-"
_STYLES = {HOLDS: "green", DIFFERS: "yellow"}


def measured_table(document: Document) -> Table:
    """A row a case and scheme, a column a metric."""
    seeds = f", seeds {', '.join(map(str, document.seeds))}" if document.seeds else ""
    table = Table(
        title=f"{document.paper} {document.figure}: {document.title} ({document.scale} scale{seeds})",
        title_style="bold",
        title_justify="left",
        header_style="bold",
    )
    with_cases = len(document.cases) > 1
    if with_cases:
        table.add_column("case")
    table.add_column("scheme")
    for name in document.metrics:
        table.add_column(named(name, "\n"), justify="right")
    previous = None
    for cell in document.cells:
        if with_cases and previous not in (None, cell.case):
            table.add_section()
        texts = [
            UNITS[metric(name).unit].text(cell.metrics[name], with_name=False)
            if name in cell.metrics
            else NOT_MEASURED
            for name in document.metrics
        ]
        label = f"{cell.label} ({cell.value})" if cell.value else cell.label
        first = [cell.case if cell.case != previous else ""] if with_cases else []
        table.add_row(*first, label + (" *" if cell.note else ""), *texts)
        previous = cell.case
    notes = dict.fromkeys(cell.note for cell in document.cells if cell.note)
    if notes:
        table.caption = "* " + "; ".join(notes)
    return table


def claims_table(document: Document) -> Table:
    """A row a claim and case."""
    table = Table(header_style="bold")
    for name in ("claim", "case", "paper", "ours", "expected", "verdict"):
        table.add_column(name, overflow="fold")
    notes = explanations(document)
    for claim in document.claims:
        style = _STYLES.get(claim.verdict, "")
        verdict = f"[{style}]{claim.verdict}[/]" if style else claim.verdict
        if claim.why:
            verdict += f" ({notes.index(claim.why) + 1})"
        table.add_row(claim.text, claim.case, claim.paper, claim.shown, claim.expect, verdict)
    return table


def explanations(document: Document) -> list[str]:
    """What explains the claims that differ or could not be measured, once each; tables count them from 1."""
    return list(dict.fromkeys(claim.why for claim in document.claims if claim.why))
