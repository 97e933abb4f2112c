# SPDX-License-Identifier: Apache-2.0
"""Listings as tables of Markdown, and text that others wrote in Markdown: nothing in it is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tailrace.p4rt.values import ABSENT
from tailrace.spec.text import printable
from tailrace.tables.cell_text import texts_of
from tailrace.tables.listing import Listing

_LIVE = re.compile(
    r"""
    \[(?P<inner>[^\[\]]*)\](?=[^(\[:])   # a pair of brackets that begins no link
    | [\\`\[\]|~$]              # escapes, code, links, cells, struck out text, formulas
    | (?<![^\W_])(?<!\s(?=\*\s))\*   # emphasis, which those of "a * b" and "RLB*" do not begin
    | \*(?![\s:,.;)]|$)
    | (?<![^\W_])_ | _(?![^\W_])
    | <(?![\s=\d]) | &(?!\s)    # HTML and its entities; "<= 1" is neither
    | :(?=//) | (?<=www)\.      # GitHub makes links of addresses
    """,
    re.VERBOSE,
)

_BLOCK = re.compile(r"^ ?(?:(?=[#>=]|[-+*](?:\W|$))|\d{1,9}(?=[.)](?:\s|$)))")
"""Where a text begins a heading, a quotation, a rule or a list."""


def escape(text: str) -> str:
    """The text on one line, as text within a line of Markdown that is not bold."""
    return _LIVE.sub(_escaped, printable(re.sub(r"\s+", " ", text)))


def _escaped(match: re.Match[str]) -> str:
    inner = match["inner"]
    return f"\\{match[0]}" if inner is None else f"[{_LIVE.sub(_escaped, inner)}]"


def escape_line(text: str) -> str:
    """The text as a line of its own."""
    return _BLOCK.sub(r"\g<0>\\", escape(text))


def bold(text: str) -> str:
    """The text in bold type, which no star of its own ends."""
    inner = re.sub(r"(?<!\\)\*", r"\*", escape(text))
    return f"**{inner}**"


def table_row(texts: Iterable[str]) -> str:
    """A row of a table, without the end of the line; the texts are Markdown."""
    return f"| {' | '.join(texts)} |"


def markdown(listing: Listing) -> str:
    """The listing as a table, its title and caption below."""
    columns = [column for column in texts_of(listing) if set(column.cells) != {ABSENT}]
    lines = [[escape(column.title) for column in columns]]
    lines.append(["---:" if column.right else "---" for column in columns])
    for number in range(len(listing.rows)):
        lines.append(
            [(bold if column.strong[number] else escape)(column.cells[number]) for column in columns]
        )
    text = "".join(f"{table_row(cells)}\n" for cells in lines)
    return text + "".join(f"\n{escape_line(line)}\n" for line in (listing.title, *listing.caption) if line)
