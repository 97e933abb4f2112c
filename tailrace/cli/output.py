# SPDX-License-Identifier: Apache-2.0
"""Listings as text: a table, JSON, JSON lines or CSV, always in the same order and with the same keys."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tailrace.cli.options import OutputFormat, View
from tailrace.p4rt.values import json_of, sort_key, text_of
from tailrace.spec import SpecError
from tailrace.spec.suggest import expected
from tailrace.spec.text import json_text, printable
from tailrace.tables.cell_text import short_name
from tailrace.tables.listing import Column, Listing, Row
from tailrace.tables.row_filter import RowFilter
from tailrace.tables.table import TextTable, styled, unstyled

if TYPE_CHECKING:
    from rich.console import Console

AT = "at"
"""Key of the time of a reading; present only when readings are repeated."""

TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)
"""The formats for people."""

_CHOSEN = -1
"""Rank of a column that --columns names: below 0, so that it is shown even without values, however narrow the
terminal."""


def show(listing: Listing, view: View, width: int | None = None) -> None:
    """Write a listing to standard output.

    A table is fitted to the terminal's width; without a terminal to `width` in characters; None: unlimited.

    Raises:
        SpecError: --columns or --sort-by names no column.
    """
    listing = arranged(listing, view)
    print_notes(listing)
    if view.format in TABLES and sys.stdout.isatty() and listing.rows:
        print_table(TextTable(listing, terminal_width(view)))
        return
    if view.format is OutputFormat.TABLE and width is not None and listing.rows:
        sys.stdout.write(unstyled(TextTable(listing, width).lines()))
    else:
        sys.stdout.write(render(listing, view.format))
    if view.format in TABLES and not listing.rows:
        sys.stderr.write(f"{listing}\n")


def filtered(listing: Listing, where: RowFilter | None) -> Listing:
    """The rows that pass --where."""
    if where is None or not listing.rows:
        return listing
    nothing = f"none of {len(listing.rows)} {listing.kind} matches --where"
    return replace(where.apply(listing), nothing=nothing)


def print_notes(listing: Listing) -> None:
    """Prints the notes of a listing to standard error."""
    for note in listing.notes:
        sys.stderr.write(f"tailrace: {printable(note)}\n")


def terminal_width(view: View) -> int | None:
    """The width that a table may have, in columns of characters; None: unlimited."""
    return None if view.format is OutputFormat.WIDE else shutil.get_terminal_size().columns


def print_table(table: TextTable) -> None:
    """Write a table to the terminal."""
    console().print(styled(table.lines()), soft_wrap=True)


def console() -> Console:
    """Rich's console on standard output."""
    from rich.console import Console

    return Console(highlight=False)


# ---- which columns, in which order ----


def arranged(listing: Listing, view: View) -> Listing:
    """The listing with the columns and the order of rows that the view asks for.

    Raises:
        SpecError: there is no such column.
    """
    if view.sort_by is not None:
        name = _column(listing, view.sort_by.removeprefix("-"), "--sort-by").name
        present = [row for row in listing.rows if row.get(name) is not None]
        absent = [row for row in listing.rows if row.get(name) is None]
        present.sort(key=lambda row: sort_key(row[name]), reverse=view.sort_by.startswith("-"))
        listing = listing.replace_rows([*present, *absent])
    if view.columns:
        columns = [replace(_column(listing, name, "--columns"), rank=_CHOSEN) for name in view.columns]
        keys = tuple(column.name for column in listing.columns if column.key)
        listing = replace(listing, columns=tuple(dict.fromkeys(columns)), keys=keys)
    return listing


def _column(listing: Listing, name: str, option: str) -> Column:
    for column in listing.columns:
        if name in (column.name, short_name(column)):
            return column
    known = [short_name(column) for column in listing.columns]
    raise SpecError(f"{option}: no column {name!r}; {expected(name, known)}")


# ---- output formats ----


def render(listing: Listing, output: OutputFormat, at: str | None = None, *, header: bool = True) -> str:
    """A listing as text that ends with a newline, or is empty.

    Args:
        listing: what to show.
        output: the format; a table is not limited in width, and empty without rows.
        at: time of the reading, if readings are repeated: JSON then becomes one line per reading.
        header: whether CSV begins with the names of the columns.
    """
    if output is OutputFormat.CSV:
        return _csv(listing, at, header=header)
    if output in TABLES:
        block = f"{listing}\n" if listing.rows else ""
        return block if at is None else f"{at}\n{block or listing}\n"
    rows = [as_json(listing, row) for row in listing.rows]
    if output is OutputFormat.JSONL:
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
