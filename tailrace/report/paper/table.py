# SPDX-License-Identifier: Apache-2.0
"""Tables of a paper's figure or table: the measurements, and the claims with the paper's numbers and ours."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tailrace.experiments.plan.seeds import seeds_text
from tailrace.p4rt.values import Value
from tailrace.papers.beside import THEIRS
from tailrace.papers.claims.kinds import FAIR, GOOD, GRADES
from tailrace.papers.document import Cell, Document
from tailrace.papers.quick import FAIL, KNOWN, PASS, Row
from tailrace.results.metrics import metric
from tailrace.results.table import HIGH, LOW, RATIO, with_ends, with_interval
from tailrace.results.units import UNITS
from tailrace.results.units import ratio_text as shown_ratio
from tailrace.tables import cell_text as tables
from tailrace.tables.listing import Column, Listing

_STYLES = {
    verdict.partition(" ")[0]: "green" if verdict in GOOD else "" if verdict in FAIR else "yellow"
    for verdict in dict.fromkeys(each for grades in GRADES.values() for each in grades)
    if not verdict.startswith("within")
}
"""Styles of verdicts by their first word; "within 15 %" and "within 1.5" have the default style."""

# columns with the highest rank are hidden first if the terminal is narrow
_CLAIMS = (
    *(Column(name) for name in ("claim", "case")),
    Column("paper"),
    Column("rerun", title="authors' re-run"),
    Column("ours"),
    Column("expected", rank=1),
    Column("kind", rank=2),
    Column("verdict", styles=_STYLES),
)


def measured_table(document: Document) -> Listing:
    """One row per case and scheme: ratios, then metrics; a narrow terminal omits the last metrics."""
    seeds = f", seeds {seeds_text(document.seeds)}" if document.seeds else ""
    several = len(document.cases) > 1
    ratios = ratio_names(document)
    columns = [Column("case", key=True, grouped=True, title="case")] if several else []
    columns.append(Column("scheme", key=True, title="scheme"))
    columns += [_ratio_column(name, ratio_title(document, name)) for name in ratios]
    beside = {name for cell in document.cells for name in cell.theirs}
    for rank, name in enumerate(document.metrics):
        columns += [_metric_column(name, rank, f"_{THEIRS}")] if name in beside else []
        columns.append(_metric_column(name, rank))
    rows = []
    for cell in document.cells:
        label = f"{cell.label} ({cell.value})" if cell.value else cell.label
        scheme = f"{label} *" if cell.note else label
        rows.append({"case": cell.case, "scheme": scheme, **_numbers(cell)})
    notes = cell_notes(document)
    cases = [f"{case}: {title}" for case, title in document.cases.items() if title and title != case]
    return Listing(
        document.name,
        with_ends(columns, rows),
        tuple(rows),
        title=f"{document.paper} {document.figure}: {document.title} ({document.scale} scale{seeds})",
        caption=(*cases, *document.notes, *(("* " + "; ".join(notes),) if notes else ())),
    )


def measured_of(documents: Iterable[Document]) -> Listing:
    """One row per figure, case and scheme: numbers in base units, with the metrics of all these figures."""
    columns = {name: Column(name, key=True) for name in ("figure", "case", "scheme")}
    columns |= {name: Column(name) for name in ("value", "note")}
    rows = []
    for document in documents:
        columns |= {column.name: column for column in measured_table(document).columns if not column.key}
        for cell in document.cells:
            named = {"figure": document.name, "case": cell.case, "scheme": cell.label}
            rows.append({**named, "value": cell.value, "note": cell.note, **_numbers(cell)})
    return Listing("cells", tuple(columns.values()), tuple(rows))


def _numbers(cell: Cell) -> dict[str, Value]:
    """The metrics and ratios of a cell, with the ends of their intervals, by column."""
    metrics = {name: (value, *cell.intervals.get(name, ())) for name, value in cell.metrics.items()}
    ratios = {f"{name}{RATIO}": values for name, values in cell.ratios.items()}
    theirs = {f"{name}_{THEIRS}": values for name, values in cell.theirs.items()}
    return {
        f"{name}{end}": value
        for name, values in (metrics | ratios | theirs).items()
        for end, value in zip(("", LOW, HIGH), values, strict=False)
    }


def _metric_column(name: str, rank: int = 0, whose: str = "") -> Column:
    show, title = UNITS[metric(name).unit].without_name, "their " * bool(whose) + metric(name).titled
    return with_interval(Column(name + whose, title=title, show=show, rank=rank))


def _ratio_column(name: str, title: str = "") -> Column:
    return with_interval(Column(f"{name}{RATIO}", title=title, show=shown_ratio))


def cell_notes(document: Document) -> list[str]:
    """The notes of cells, without duplicates; in the table a star marks the schemes that have a note."""
    return list(dict.fromkeys(cell.note for cell in document.cells if cell.note))


def claims_table(document: Document) -> Listing:
    """The table of claims: one row per claim and case."""
    notes = explanations(document)
    columns = tuple(column for column in _CLAIMS if column.name != "rerun" or has_reruns(document))
    rows = tuple(
        {
            "claim": claim.text,
            "case": claim.case,
            "paper": claim.paper,
            "rerun": claim.rerun,
            "ours": claim.shown,
            "expected": claim.expect,
            "kind": claim.kind,
            "verdict": f"{claim.verdict} ({notes.index(claim.why) + 1})" if claim.why else claim.verdict,
        }
        for claim in document.claims
    )
    return Listing("claims", columns, rows)


def quick_table(rows: Iterable[Row]) -> Listing:
    """The table of quick verdicts."""
    columns = (
        Column("figure", key=True, grouped=True),
        *(Column(name) for name in ("claim", "case", "paper", "ours")),
        Column("result", styles={PASS: "green", FAIL: "red", KNOWN.partition(" ")[0]: "yellow"}),
        Column("stored", title="at paper scale", styles=_STYLES),
    )
    return Listing("claims", columns, tuple(map(msgspec.structs.asdict, rows)))


def claims_of(documents: Iterable[Document]) -> Listing:
    """One row per claim and case of all these figures."""
    columns = (Column("figure", key=True), *_CLAIMS, Column("measured", data=True), Column("why", rank=3))
    rows = tuple(
        {**row, "figure": document.name, "verdict": claim.verdict, "why": claim.why, "measured": claim.ours}
        for document in documents
        for row, claim in zip(claims_table(document).rows, document.claims, strict=True)
    )
    return Listing("claims", columns, rows)


def has_reruns(document: Document) -> bool:
    """Whether any claim contains the result of a re-run by the paper's authors."""
    return any(claim.rerun for claim in document.claims)


def cell_text(cell: Cell, name: str) -> str:
    """A metric of a cell in its unit, with its interval if there is one."""
    return tables.cell_text(_metric_column(name), _numbers(cell))


def ratio_names(document: Document) -> list[str]:
    """The metrics whose ratios to a base are shown, in the order of the figure."""
    return list(dict.fromkeys(name for cell in document.cells for name in cell.ratios))


def ratio_title(document: Document, name: str) -> str:
    """The title of a metric's ratio to the base."""
    return f"{metric(name).title} / {document.base}"


def ratio_text(cell: Cell, name: str) -> str:
    """The ratio of a cell's metric to the base, with its interval if there is one."""
    return tables.cell_text(_ratio_column(name), _numbers(cell))


def explanations(document: Document) -> list[str]:
    """The explanations of claims that differ or were not measured, without duplicates; numbered from 1."""
    return list(dict.fromkeys(claim.why for claim in document.claims if claim.why))
