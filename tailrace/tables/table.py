# SPDX-License-Identifier: Apache-2.0
"""Text tables of all commands: lines that fit a terminal, or are as wide as needed.

If the columns do not fit side by side, cells of text are wrapped at words; if that is not enough, columns of
the highest rank (Column.rank) are hidden, and a line below names them. Words that still do not fit are
broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from tailrace.spec.text import printable
from tailrace.tables.cell_text import ColumnTexts, short_name, texts_of
from tailrace.tables.listing import Listing
from tailrace.tables.rates import Identity, identity

if TYPE_CHECKING:
    from rich.text import Text

HEAD, NOTE, CHANGED, STRONG = "bold", "dim", "bold reverse", "bold"
_GAP = 2
_PIECES = re.compile(r"[^\s_=,:/]*[_=,:/]+|[^\s_=,:/]+")
"""The pieces into which a word is broken that is too long for a line."""

Segment = tuple[str, str]
"""A text and its style."""

Cells = dict[Identity, dict[str, str]]
"""The texts of cells, by identity of the row and by column."""


@dataclass(frozen=True, slots=True)
class _ColumnLayout:
    """A column and its widths in characters: the least, the natural and the assigned width."""

    texts: ColumnTexts
    least: int
    natural: int
    width: int

    @classmethod
    def of(cls, texts: ColumnTexts, before: int) -> _ColumnLayout:
        """The layout of a column with the texts, which was `before` characters wide in the last table.

        The least width is that of the longest word, or of the longest cell if cells are right-aligned. The
        natural width is that of the longest cell, and at least `before`.
        """
        title = max(map(len, _PIECES.findall(texts.title)), default=0)
        cells = max(map(len, texts.cells), default=0)
        words = max((len(word) for cell in texts.cells for word in cell.split()), default=0)
        natural = max(len(texts.title), cells, before)
        return cls(texts, max(title, cells if texts.right else words), natural, natural)


def cells_of(listing: Listing) -> Cells:
    """The texts of a listing, to find changed cells later."""
    columns = texts_of(listing)
    return {
        identity(listing, row): {texts.column.name: texts.cells[index] for texts in columns}
        for index, row in enumerate(listing.rows)
    }


class TextTable:
    """A listing as lines; columns never get narrower than in an earlier table, so that they do not move."""

    def __init__(
        self, listing: Listing, width: int | None = None, *, widths: dict[str, int] | None = None
    ) -> None:
        """Lays the table out.

        Args:
            listing: a listing with at least one row.
            width: width of the terminal in characters; None: unlimited.
            widths: widths of the columns when the table was drawn last; they are updated.
        """
        self._listing, self._width = listing, width
        before = {} if widths is None else widths
        columns = [_ColumnLayout.of(texts, before.get(texts.column.name, 0)) for texts in texts_of(listing)]
        before.update((column.texts.column.name, column.natural) for column in columns)
        self._columns = columns if width is None else _fitted(columns, width)
        shown = {column.texts.column.name for column in self._columns}
        self._hidden = [
            short_name(column.texts.column) for column in columns if column.texts.column.name not in shown
        ]

    def lines(self, before: Cells | None = None) -> Iterator[list[Segment]]:
        """The lines as segments; cells that differ from `before`, and new rows, are highlighted."""
        if self._listing.title:
            yield from ([(line, "")] for line in self._wrapped(printable(self._listing.title)))
        yield from self._row([_wrap(column.texts.title, column.width) for column in self._columns], HEAD)
        for index, row in enumerate(self._listing.rows):
            if index and self._is_new_group(index):
                yield []
            old = None if before is None else before.get(identity(self._listing, row), {})
            cells = [_wrap(column.texts.cells[index], column.width) for column in self._columns]
            yield from self._row(cells, *(_style(column.texts, index, old) for column in self._columns))
        for text in self._listing.caption:
            yield from ([(line, "")] for line in self._wrapped(printable(text)))
        if self._hidden:
            yield from (
                [(line, NOTE)] for line in self._wrapped(f"hidden: {', '.join(self._hidden)} (-o wide)")
            )

    def _wrapped(self, text: str) -> list[str]:
        return [text] if self._width is None else _wrap(text, self._width)

    def _row(self, cells: Sequence[list[str]], *styles: str) -> Iterator[list[Segment]]:
        """The lines of a row; a single style applies to all cells."""
        each = styles if len(styles) == len(cells) else styles[:1] * len(cells)
        for parts in zip_longest(*cells, fillvalue=""):
            line: list[Segment] = []
            for column, part, style in zip(self._columns, parts, each, strict=True):
                padded = part.rjust(column.width) if column.texts.right else part.ljust(column.width)
                line += [(padded, style), (" " * _GAP, "")]
            yield line[:-1]

    def _is_new_group(self, index: int) -> bool:
        return any(column.texts.column.grouped and column.texts.cells[index] for column in self._columns)


def unstyled(lines: Iterator[list[Segment]]) -> str:
    """Lines as text, without styles and trailing blanks."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def styled(lines: Iterator[list[Segment]]) -> Text:
    """Lines with their styles, as rich's Text."""
    from rich.text import Text

    return Text("\n", no_wrap=True).join(Text.assemble(*line) for line in lines)


def _style(texts: ColumnTexts, index: int, old: dict[str, str] | None) -> str:
    cell = texts.cells[index]
    if old is not None and old.get(texts.column.name) != cell:
        return CHANGED
    return STRONG if texts.strong[index] else texts.column.styles.get(cell.partition(" ")[0], "")


def _fitted(columns: Sequence[_ColumnLayout], width: int) -> list[_ColumnLayout]:
    """The columns that fit the terminal, with widths up to their natural ones."""
    shown = list(columns)
    while shown and sum(column.least + _GAP for column in shown) - _GAP > width:
        hideable = [each for each in shown if each.texts.column.rank > 0 and not _distinguishes(each, shown)]
        if not hideable:
            break
        shown.remove(max(reversed(hideable), key=lambda each: each.texts.column.rank))
    available = width + _GAP - _GAP * len(shown)
    widths = [column.least for column in shown]
    # still too wide: the widest columns shrink, down to one character
    while sum(widths) > max(available, len(widths)):
        widths[widths.index(max(widths))] -= 1
    spare = available - sum(widths)
    # the spare width is divided equally, but no column gets more than it needs
    by_need = sorted(range(len(shown)), key=lambda index: shown[index].natural - widths[index])
    for remaining, index in zip(range(len(shown), 0, -1), by_need, strict=True):
        added = max(min(spare // remaining, shown[index].natural - widths[index]), 0)
        widths[index] += added
        spare -= added
    return [replace(column, width=width) for column, width in zip(shown, widths, strict=True)]


def _distinguishes(column: _ColumnLayout, columns: Sequence[_ColumnLayout]) -> bool:
    """Whether some rows differ in this key column, and in no other key column of `columns`."""
    keys = [other.texts for other in columns if other.texts.column.key and other is not column]
    if not column.texts.column.key:
        return False
    rows = range(len(column.texts.cells))
    other_keys = {tuple(texts.cells[row] for texts in keys) for row in rows}
    return len(other_keys) < len(
        {(column.texts.cells[row], *(texts.cells[row] for texts in keys)) for row in rows}
    )


def _wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters, broken at blanks, else after _=,:/, else anywhere."""
    if len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        if len(lines[-1] + gap + word) <= width:
            lines[-1] += gap + word
            continue
        if lines[-1]:
            lines.append("")
        for piece in _PIECES.findall(word):
            if len(lines[-1] + piece) > width and lines[-1]:
                lines.append("")
            lines[-1] += piece
            while len(lines[-1]) > width:
                lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return lines
