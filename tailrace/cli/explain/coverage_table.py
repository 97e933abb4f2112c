# SPDX-License-Identifier: Apache-2.0
"""Coverage as tables: the share of each kind of statement that was used, and what was not.

Coverage.uses has for each statement, branch and so on how often packets executed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.switch.trace.coverage import Coverage
from tailrace.tables.listing import Column, Listing, Row

_KINDS = {
    "state": "parser states", "select": "cases of selects", "extract": "extractions",
    "table": "hits and misses", "action": "actions", "condition": "branches", "statement": "statements",
}  # fmt: skip
_NO_PROGRAMS = "the files contain no coverage of a program"
_LINES, _ENTRIES = "lines", "entries at the end"

COLUMNS = (
    Column("program", key=True, grouped=True),
    Column("what", key=True),
    Column("used"),
    Column("all"),
    Column("percent"),
)
# `rank`: a narrow terminal hides the columns of the highest rank first
_UNUSED = (
    Column("program", key=True, grouped=True),
    Column("place", key=True),
    Column("kind", key=True),
    Column("name", key=True),
    Column("what", key=True, rank=1),
)


def listing(programs: Sequence[Coverage]) -> Listing:
    """A row for each program and kind of statement."""
    rows = tuple(row for coverage in programs for row in _rows(coverage))
    return Listing("coverage", COLUMNS, rows, nothing=_NO_PROGRAMS)


def _rows(covered: Coverage) -> Iterator[Row]:
    for kind, name in _KINDS.items():
        yield from _row(covered.program, name, [use.count > 0 for use in covered.uses if use.kind == kind])
    lines: dict[tuple[str, int], bool] = {}
    for use in covered.uses:
        if use.file:
            place = (use.file, use.line)
            lines[place] = lines.get(place, False) or use.count > 0
    yield from _row(covered.program, _LINES, list(lines.values()))
    yield from _row(covered.program, _ENTRIES, [entry.hit for entry in covered.entries])


def _row(program: str, what: str, used: list[bool]) -> Iterator[Row]:
    if used:
        percent = round(100 * sum(used) / len(used), 1)
        yield {"program": program, "what": what, "used": sum(used), "all": len(used), "percent": percent}


def unused_listing(programs: Sequence[Coverage]) -> Listing:
    """A row for each statement that no packet has executed, and each entry that none has hit."""
    rows: list[Row] = []
    for coverage in programs:
        parts = [
            (f"{use.file}:{use.line}" if use.file else "", use.kind, use.name, use.what)
            for use in coverage.uses
            if not use.count
        ]
        parts += [("", "entry", entry.table, entry.written) for entry in coverage.entries if not entry.hit]
        names = [column.name for column in _UNUSED]
        rows += [dict(zip(names, (coverage.program, *part), strict=True)) for part in parts]
    nothing = "packets have executed everything" if programs else _NO_PROGRAMS
    return Listing("unused", _UNUSED, tuple(rows), nothing=nothing)
