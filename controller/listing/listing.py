# SPDX-License-Identifier: Apache-2.0
"""What an inspection yields: rows of typed values under named columns, in a stable order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailrace.p4rt.values import Value, natural_key, sort_key

Row = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    `key` columns tell rows apart. `grows` marks a running count, of which a rate can be made. `is_time` marks
    times in ns, which a table for people shows with a unit.
    """

    name: str
    key: bool = False
    grows: bool = False
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one kind, from one or many switches."""

    kind: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    names: frozenset[str] = frozenset()
    """Names inside the cells (key fields, parameters) that filters may use beside the columns."""
    notes: tuple[str, ...] = field(default=())
    """What the user should know besides the rows."""

    def replace_rows(self, rows: Iterable[Row]) -> Listing:
        """The same listing with other rows."""
        return Listing(self.kind, self.columns, tuple(rows), self.names, self.notes)


def merge(kind: str, columns: tuple[Column, ...], parts: Iterable[Listing]) -> Listing:
    """One listing out of those of several switches."""
    listings = list(parts)
    return Listing(
        kind,
        columns,
        tuple(row for part in listings for row in part.rows),
        frozenset().union(*(part.names for part in listings)),
        tuple(note for part in listings for note in part.notes),
    )


def in_order(columns: tuple[Column, ...], rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows sorted by their key columns, so that two listings of the same state are the same text."""
    keys = [column.name for column in columns if column.key]
    return tuple(sorted(rows, key=lambda row: tuple(_cell_key(row.get(key)) for key in keys)))


def _cell_key(value: Value) -> tuple[int, object]:
    return (3, natural_key(value)) if isinstance(value, str) else sort_key(value)
