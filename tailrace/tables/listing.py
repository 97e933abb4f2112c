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
    key: whether it identifies rows, together with the other key columns
    grows: whether it is a running count, of which a rate can be computed
    is_time: whether it has times in ns, which text tables show in a common unit
    rank: columns with the highest rank are hidden first if a terminal is too narrow; those of rank 0 are
        never hidden, and those below 0 are shown even if they are empty
    title: title in text tables; empty: the name
    show: formats a value for text tables; None: `values.text_of`
    unit_of: columns of times with the same string here share a unit
    grouped: whether values equal to the one in the row above are left blank
    styles: terminal styles of cells, by their first word
    ends: fields of a row with the ends of the value's interval, which text tables show with it
    data: whether text tables leave the column out unless it is asked for
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
    """Rows of one kind, from one or many switches."""

    kind: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    names: frozenset[str] = frozenset()
    """Names inside the cells (key fields, parameters) that filters may use besides the columns."""
    notes: tuple[str, ...] = field(default=())
    """Notes to the user, which are shown on standard error."""
    title: str = ""
    caption: tuple[str, ...] = ()
    """Lines above and below a table for people."""
    keys: tuple[str, ...] = ()
    """Names of the key columns, if `columns` was reduced; empty: those of `columns`."""
    best: str = ""
    """The field of a row with the names of the columns whose cells are emphasised."""
    nothing: str = ""
    """The sentence shown instead of a table without rows; empty: "there are no `kind`"."""

    def replace_rows(self, rows: Iterable[Row]) -> Listing:
        """The same listing with other rows."""
        return replace(self, rows=tuple(rows))


def merge(kind: str, columns: tuple[Column, ...], parts: Iterable[Listing], *, nothing: str = "") -> Listing:
    """One listing from those of several switches; `nothing`: as in Listing."""
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
    return (3, natural_key(value)) if isinstance(value, str) else sort_key(value)
