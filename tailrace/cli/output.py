# SPDX-License-Identifier: Apache-2.0
"""Listings as text: a table, JSON, JSON lines or CSV, always in the same order and with the same keys."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tailrace.cli.options import Form
from tailrace.controller.listing.listing import Column, Listing, Row
from tailrace.controller.listing.rates import Identity, identity
from tailrace.p4rt.values import Value, json_of, text_of
from tailrace.words.text import json_text, printable
from tailrace.words.units import format_time

if TYPE_CHECKING:
    from rich.table import Table

AT = "at"
"""Key of the time of a reading, which is there when readings are repeated."""
_TIME_SUFFIX = "_ns"
_CHANGED = "bold reverse"
_GAP = "  "

Cells = dict[Identity, tuple[str, ...]]
"""Texts of the rows of a table, by what tells the rows apart."""


def render(listing: Listing, form: Form, at: str | None = None, *, header: bool = True) -> str:
    """A listing as text that ends with a newline, or is empty.

    Args:
        listing: what to show.
        form: how.
        at: time of the reading, where readings are repeated: JSON then becomes one line a reading.
        header: whether CSV begins with the names of the columns.
    """
    if form is Form.CSV:
        return _csv(listing, at, header=header)
    if form is Form.TABLE:
        block = _plain_table(listing)
        return block if at is None else f"{at}\n{block}\n"
    rows = [as_json(listing, row) for row in listing.rows]
    if form is Form.JSONL:
        return "".join(_line(row if at is None else {AT: at, **row}) for row in rows)
    return json_text(rows, indent=2) + "\n" if at is None else _line({AT: at, "rows": rows})


def as_json(listing: Listing, row: Row) -> dict[str, Any]:
    """A row with every column, in the order of the columns."""
    return {column.name: json_of(row.get(column.name)) for column in listing.columns}


def _line(value: Any) -> str:
    return json_text(value) + "\n"


def _csv(listing: Listing, at: str | None, *, header: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    before = [] if at is None else [AT]
    if header:
        writer.writerow([*before, *(printable(column.name) for column in listing.columns)])
    for row in listing.rows:
        cells = [printable(text_of(row.get(column.name), "")) for column in listing.columns]
        writer.writerow([*([] if at is None else [at]), *cells])
    return out.getvalue()


# ---- tables for people ----


def shown_columns(listing: Listing) -> list[Column]:
    """Columns that have something to show in some row; all where there is no row."""
    if not listing.rows:
        return list(listing.columns)
    return [
        column for column in listing.columns if any(_filled(row.get(column.name)) for row in listing.rows)
    ]


def _filled(value: Value) -> bool:
    return value is not None and value not in ((), {})


def _title(column: Column) -> str:
    return printable(column.name.removesuffix(_TIME_SUFFIX) if column.is_time else column.name)


def _cell(column: Column, value: Value) -> str:
    if column.is_time and isinstance(value, int):
        return format_time(value)
    return printable(text_of(value))  # names are the program's, and the program is anybody's


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _right(listing: Listing, column: Column) -> bool:
    """Numbers are aligned at their end."""
    values = [row.get(column.name) for row in listing.rows]
    return any(map(_is_number, values)) and all(value is None or _is_number(value) for value in values)


def _plain_table(listing: Listing) -> str:
    """Columns padded with blanks, never cut: for pipes and files."""
    columns = shown_columns(listing)
    texts = [[_title(column) for column in columns]]
    texts += [[_cell(column, row.get(column.name)) for column in columns] for row in listing.rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [_right(listing, column) for column in columns]
    return "".join(_padded(line, widths, right) for line in texts)


def _padded(cells: list[str], widths: list[int], right: list[bool]) -> str:
    parts = [
        cell.rjust(width) if at_end else cell.ljust(width)
        for cell, width, at_end in zip(cells, widths, right, strict=True)
    ]
    return _GAP.join(parts).rstrip() + "\n"


def cells_of(listing: Listing) -> Cells:
    """The texts of all columns by row, to tell later what has changed."""
    return {
        identity(listing, row): tuple(_cell(column, row.get(column.name)) for column in listing.columns)
        for row in listing.rows
    }


def rich_table(listing: Listing, before: Cells | None = None) -> Table:
    """A table for a terminal; cells that differ from `before` stand out, and rows that were not there."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    columns = shown_columns(listing)
    for column in columns:
        table.add_column(
            _title(column), justify="right" if _right(listing, column) else "left", overflow="fold"
        )
    places = {column.name: number for number, column in enumerate(listing.columns)}
    for row in listing.rows:
        old = None if before is None else before.get(identity(listing, row), ())
        table.add_row(*_rich_cells(columns, row, places, old))
    return table


def _rich_cells(
    columns: list[Column], row: Row, places: dict[str, int], old: tuple[str, ...] | None
) -> Iterator[Any]:
    from rich.text import Text

    for column in columns:
        text = _cell(column, row.get(column.name))
        place = places[column.name]
        changed = old is not None and (place >= len(old) or old[place] != text)
        yield Text(text, style=_CHANGED if changed else "")
