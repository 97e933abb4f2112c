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

    name: as data and --columns have it
    key: whether it tells rows apart
    grows: a running count, of which a rate can be made
    is_time: times in ns, which a table for people shows in one unit
    rank: where a terminal is too narrow columns of the highest rank go first; those of rank 0 stay, and those
        below are shown even if they are empty
    title: of a table for people; none: the name
    show: a value for people; none: `values.text_of`
    unit_of: columns of times with the same word here are shown in one unit
    grouped: values equal to those of the row above are left out
    styles: how a terminal shows cells that begin with a word
    ends: the fields of a row that hold the ends of the value's interval, which a table for people shows
    with it
    data: only data has the column, or who asks for it
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
    """Names inside the cells (key fields, parameters) that filters may use beside the columns."""
    notes: tuple[str, ...] = field(default=())
    """What the user should know besides the rows."""
    title: str = ""
    caption: tuple[str, ...] = ()
    """Lines above and below a table for people."""
    keys: tuple[str, ...] = ()
    """Names of the columns that tell rows apart, where not all of `columns` are there any more."""
    best: str = ""
    """The field of a row that names the columns whose cells stand out."""
    nothing: str = ""
    """The sentence that stands for a table without rows; empty: there are no `kind`."""

    def replace_rows(self, rows: Iterable[Row]) -> Listing:
        """The same listing with other rows."""
        return replace(self, rows=tuple(rows))


def merge(kind: str, columns: tuple[Column, ...], parts: Iterable[Listing], *, nothing: str = "") -> Listing:
    """One listing out of those of several switches; `nothing` is the text for no rows."""
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
    """Rows sorted by their key columns, so that two listings of the same state are the same text."""
    keys = [column.name for column in columns if column.key]
    return tuple(sorted(rows, key=lambda row: tuple(_cell_key(row.get(key)) for key in keys)))


def _cell_key(value: Value) -> tuple[int, object]:
    return (3, natural_key(value)) if isinstance(value, str) else sort_key(value)
