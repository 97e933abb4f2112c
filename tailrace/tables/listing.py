# SPDX-License-Identifier: Apache-2.0
"""Listings: rows of typed values under named columns, in a stable order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.p4rt.values import Value, natural_key, sort_key

Row = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    name: the column's name in data and for --columns
    key: whether the column is a key; a row is identified by its values in all key columns
    grows: whether values are counts that only increase, so that rates can be computed
    is_time: whether values are times in ns; text tables show a column of times in one unit
    rank: if the terminal is too narrow, columns of the highest rank are hidden first; columns of rank 0 or
        less are never hidden; columns of rank below 0 are shown even without any value
    title: title in text tables; empty: the name
    show: formats a value for text tables; None: `values.text_of`
    unit_of: columns of times with the same `unit_of` share a time unit
    grouped: whether a cell is left blank if it equals the cell above
    styles: terminal styles of cells, by the first word of the cell
    ends: names of the two row fields with the lower and upper end of the value's interval, which text tables
        show after the value
    data: whether text tables omit the column, unless its rank is below 0
    """

    name: str
    key: bool = False
    grows: bool = False
    is_time: bool = False
    rank: int = 0
    title: str = ""
    show: Callable[[Any], str] | None = None
    unit_of: str = ""
    grouped: bool = False
    styles: Mapping[str, str] = field(default_factory=dict, hash=False)
    ends: tuple[str, ...] = ()
    data: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one kind, such as table entries, from one or many switches."""

    kind: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    names: frozenset[str] = frozenset()
    """Names of fields inside cells (match fields, action parameters) that filters may use like columns."""
    notes: tuple[str, ...] = field(default=())
    """Notes to the user, shown on standard error."""
    title: str = ""
    caption: tuple[str, ...] = ()
    """`title` is a line above a text table, `caption` are lines below the table."""
    keys: tuple[str, ...] = ()
    """Names of the key columns, if `columns` no longer has all of them; empty: the keys in `columns`."""
    best: str = ""
    """Name of the row field that contains the names of the columns to emphasise; empty: none."""
    nothing: str = ""
    """The sentence shown instead of a table without rows; empty: "there are no `kind`"."""

    def __str__(self) -> str:
        """The rows as a text table of any width; without rows a sentence."""
        # imported late: it needs this module
        from tailrace.tables.table import TextTable, unstyled

        empty = self.nothing or f"there are no {self.kind}"
        return unstyled(TextTable(self).lines()).rstrip("\n") if self.rows else empty

    def replace_rows(self, rows: Iterable[Row]) -> Listing:
        """The same listing with other rows."""
        return replace(self, rows=tuple(rows))


def merge(kind: str, columns: tuple[Column, ...], parts: Iterable[Listing], *, nothing: str = "") -> Listing:
    """Combines the listings of several switches; `nothing`: as in Listing."""
    listings = list(parts)
    return Listing(
        kind,
        columns,
        tuple(row for part in listings for row in part.rows),
        frozenset().union(*(part.names for part in listings)),
        tuple(note for part in listings for note in part.notes),
        nothing=nothing,
    )


def in_order(columns: tuple[Column, ...], rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows sorted by their key columns, so that listings of the same state are equal."""
    keys = [column.name for column in columns if column.key]
    return tuple(sorted(rows, key=lambda row: tuple(_cell_key(row.get(key)) for key in keys)))


def _cell_key(value: Value) -> tuple[int, object]:
    # sort_key of a str, without its conversion to str
    return (3, natural_key(value)) if isinstance(value, str) else sort_key(value)
