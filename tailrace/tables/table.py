# SPDX-License-Identifier: Apache-2.0
"""Text tables of all commands: lines of cells that fit a terminal, or as wide as needed.

Where the columns do not fit side by side, cells of text wrap at words; where that is not enough, the columns
of the highest rank are left out, and a line below says which. What then still does not fit is folded.
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
"""Of a word that is too long for a line."""

Segment = tuple[str, str]
"""A text and its style."""

Cells = dict[Identity, dict[str, str]]
"""Texts of the rows of a table by column, by what tells the rows apart."""


@dataclass(frozen=True, slots=True)
class _Laid:
    """A column and how wide it is, in characters."""

    texts: ColumnTexts
    least: int
    natural: int
    width: int

    @classmethod
    def of(cls, texts: ColumnTexts, before: int) -> _Laid:
        """As narrow as its words allow, and as wide as its cells are; at least as wide as it was before."""
        title = max(map(len, _PIECES.findall(texts.title)), default=0)
        cells = max(map(len, texts.cells), default=0)
        words = max((len(word) for cell in texts.cells for word in cell.split()), default=0)
        natural = max(len(texts.title), cells, before)
        return cls(texts, max(title, cells if texts.right else words), natural, natural)


def cells_of(listing: Listing) -> Cells:
    """The texts of a listing, to tell later what has changed."""
    columns = texts_of(listing)
    return {
        identity(listing, row): {texts.column.name: texts.cells[number] for texts in columns}
        for number, row in enumerate(listing.rows)
    }


class TextTable:
    """A listing as lines; widths that a table had `before` are kept, so that columns stand still."""

    def __init__(
        self, listing: Listing, width: int | None = None, *, widths: dict[str, int] | None = None
    ) -> None:
        """Lay out.

        Args:
            listing: with at least one row.
            width: of the terminal in characters; None: as wide as it needs to be.
            widths: of the columns when the table was drawn last; they are updated.
        """
        self._listing, self._width = listing, width
        before = {} if widths is None else widths
        laid = [_Laid.of(texts, before.get(texts.column.name, 0)) for texts in texts_of(listing)]
        before.update((column.texts.column.name, column.natural) for column in laid)
        self._laid = laid if width is None else _fitted(laid, width)
        kept = {column.texts.column.name for column in self._laid}
        self._hidden = [
            short_name(column.texts.column) for column in laid if column.texts.column.name not in kept
        ]

    def lines(self, before: Cells | None = None) -> Iterator[list[Segment]]:
        """Every line as segments; cells that differ from `before` stand out, and rows that were not there."""
        if self._listing.title:
            yield from ([(line, "")] for line in self._wrapped(printable(self._listing.title)))
        yield from self._row([_wrap(column.texts.title, column.width) for column in self._laid], HEAD)
        for number, row in enumerate(self._listing.rows):
            if number and self._is_new_group(number):
                yield []
            old = None if before is None else before.get(identity(self._listing, row), {})
            cells = [column.texts.cells[number] for column in self._laid]
            styles = [_style(column.texts, number, old) for column in self._laid]
            yield from self._row(
                [_wrap(cell, laid.width) for laid, cell in zip(self._laid, cells, strict=True)], *styles
            )
        for text in self._listing.caption:
            yield from ([(line, "")] for line in self._wrapped(printable(text)))
        if self._hidden:
            yield from (
                [(line, NOTE)] for line in self._wrapped(f"hidden: {', '.join(self._hidden)} (-o wide)")
            )

    def _wrapped(self, text: str) -> list[str]:
        return [text] if self._width is None else _wrap(text, self._width)

    def _row(self, cells: Sequence[list[str]], *styles: str) -> Iterator[list[Segment]]:
        """The lines of a row; one style is that of all its cells."""
        each = styles if len(styles) == len(cells) else styles[:1] * len(cells)
        for parts in zip_longest(*cells, fillvalue=""):
            line: list[Segment] = []
            for laid, part, style in zip(self._laid, parts, each, strict=True):
                padded = part.rjust(laid.width) if laid.texts.right else part.ljust(laid.width)
                line += [(padded, style), (" " * _GAP, "")]
            yield line[:-1]

    def _is_new_group(self, number: int) -> bool:
        return any(column.texts.column.grouped and column.texts.cells[number] for column in self._laid)


def unstyled(lines: Iterator[list[Segment]]) -> str:
    """Lines without styles, and without blanks at their ends."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def styled(lines: Iterator[list[Segment]]) -> Text:
    """Lines with their styles, for rich."""
    from rich.text import Text

    return Text("\n", no_wrap=True).join(Text.assemble(*line) for line in lines)


def _style(texts: ColumnTexts, number: int, old: dict[str, str] | None) -> str:
    cell = texts.cells[number]
    if old is not None and old.get(texts.column.name) != cell:
        return CHANGED
    return STRONG if texts.strong[number] else texts.column.styles.get(cell.partition(" ")[0], "")


def _fitted(laid: Sequence[_Laid], width: int) -> list[_Laid]:
    """The columns that fit, each as wide as it may be."""
    kept = list(laid)
    while kept and sum(column.least + _GAP for column in kept) - _GAP > width:
        able = [each for each in kept if each.texts.column.rank > 0 and not _distinguishes(each, kept)]
        if not able:
            break
        kept.remove(max(reversed(able), key=lambda each: each.texts.column.rank))
    room = width + _GAP - _GAP * len(kept)
    widths = [column.least for column in kept]
    while sum(widths) > max(room, len(widths)):
        widths[widths.index(max(widths))] -= 1
    spare = room - sum(widths)
    # each gets as much as the others, unless it needs less
    by_need = sorted(range(len(kept)), key=lambda number: kept[number].natural - widths[number])
    for left, number in zip(range(len(kept), 0, -1), by_need, strict=True):
        more = max(min(spare // left, kept[number].natural - widths[number]), 0)
        widths[number] += more
        spare -= more
    return [replace(laid, width=got) for laid, got in zip(kept, widths, strict=True)]


def _distinguishes(laid: _Laid, columns: Sequence[_Laid]) -> bool:
    """Whether some rows differ in this key column, and in no other one."""
    keys = [other.texts for other in columns if other.texts.column.key and other is not laid]
    if not laid.texts.column.key:
        return False
    rows = range(len(laid.texts.cells))
    rest = {tuple(texts.cells[row] for texts in keys) for row in rows}
    return len(rest) < len({(laid.texts.cells[row], *(texts.cells[row] for texts in keys)) for row in rows})


def _wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters: at blanks, else within a word, else anywhere."""
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
