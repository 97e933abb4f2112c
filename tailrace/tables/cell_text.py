# SPDX-License-Identifier: Apache-2.0
"""Listings as text, column by column: titles, cells, one time unit per column."""

from __future__ import annotations

import statistics

import msgspec

from tailrace.p4rt.values import ABSENT, Value, text_of
from tailrace.spec.text import printable
from tailrace.spec.units import significant, time_unit
from tailrace.tables.listing import Column, Listing, Row

_TIME_SUFFIX = "_ns"

Unit = tuple[int, str]
"""The length of a time unit in ns, and its name."""


class ColumnTexts(msgspec.Struct, frozen=True):
    """The text of a column. `right`: whether it is right-aligned, as numbers are; `strong`: whether each cell
    is emphasised.
    """

    column: Column
    title: str
    cells: tuple[str, ...]
    right: bool
    strong: tuple[bool, ...]


def short_name(column: Column) -> str:
    """The name of a column, without the suffix `_ns` if it has times: text tables choose their unit."""
    return column.name.removesuffix(_TIME_SUFFIX) if column.is_time else column.name


def texts_of(listing: Listing) -> list[ColumnTexts]:
    """The texts of columns of rank below 0 (Column.rank), and of columns without `data` that have a value in
    some row. If there are no rows, columns need no value.
    """
    units = _units(listing)
    return [
        _texts(listing, column, units)
        for column in listing.columns
        if column.rank < 0
        or (
            not column.data
            and (not listing.rows or any(_has_value(row.get(column.name)) for row in listing.rows))
        )
    ]


def _has_value(value: Value) -> bool:
    return value is not None and value not in ((), {})


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _texts(listing: Listing, column: Column, units: dict[str, Unit]) -> ColumnTexts:
    values = [row.get(column.name) for row in listing.rows]
    right = column.show is not None or (
        any(map(_is_number, values)) and all(value is None or _is_number(value) for value in values)
    )
    unit = units.get(column.unit_of or column.name)
    title = printable(column.title or short_name(column)) + (f" ({unit[1]})" if unit else "")
    cells = [cell_text(column, row, unit) for row in listing.rows]
    if column.grouped:
        cells = [cell if cell != before else "" for cell, before in zip(cells, [None, *cells], strict=False)]
    # a row's field `Listing.best` has names of columns
    strong = tuple(
        isinstance(best := row.get(listing.best), tuple) and column.name in best for row in listing.rows
    )
    return ColumnTexts(column, title, tuple(cells), right, strong)


def cell_text(column: Column, row: Row, unit: Unit | None = None) -> str:
    """The text of a value, with its interval if there is one; `unit`: that of a column of times."""
    text = _value_text(column, row.get(column.name), unit)
    ends = [row.get(name) for name in column.ends]
    numbers = [end for end in ends if isinstance(end, (int, float))]
    if len(numbers) != 2:
        return text
    low, high = numbers
    least, most = _value_text(column, low, unit), _value_text(column, high, unit)
    return text if text == least == most else f"{text} ({least}..{most})"


def _value_text(column: Column, value: Value, unit: Unit | None) -> str:
    if value is None:
        return ABSENT
    if unit is not None and isinstance(value, (int, float)):
        return significant(value / unit[0])
    if column.show is not None:
        return column.show(value)
    return printable(text_of(value))  # names come from the program, which is untrusted


def _units(listing: Listing) -> dict[str, Unit]:
    """The time unit of each column of times, from its median; columns that share a unit share the median."""
    times: dict[str, list[float]] = {}
    for column in listing.columns:
        if column.is_time:
            values = [row.get(column.name) for row in listing.rows]
            times.setdefault(column.unit_of or column.name, []).extend(
                value for value in values if isinstance(value, (int, float)) and value
            )
    return {name: time_unit(statistics.median(times_ns)) for name, times_ns in times.items() if times_ns}
