# SPDX-License-Identifier: Apache-2.0
"""Listings as Markdown tables, and escaping of untrusted text, so that nothing in it is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tailrace.p4rt.values import ABSENT
from tailrace.spec.text import printable
from tailrace.tables.cell_text import texts_of
from tailrace.tables.listing import Listing

_MARKUP = re.compile(
    r"""
    \[(?P<inner>[^\[\]]*)\](?=[^(\[:])   # a pair of brackets that begins no link
    | [\\`\[\]|~$]              # escapes, code, links, cells, struck out text, formulas
    | (?<![^\W_])(?<!\s(?=\*\s))\*   # emphasis, but not the stars in "a * b" and "RLB*"
    | \*(?![\s:,.;)]|$)
    | (?<![^\W_])_ | _(?![^\W_])
    | <(?![\s=\d]) | &(?!\s)    # HTML and its entities; "<= 1" is neither
    | :(?=//) | (?<=www)\.      # addresses, which GitHub turns into links
    """,
    re.VERBOSE,
)

_BLOCK = re.compile(r"^ ?(?:(?=[#>=]|[-+*](?:\W|$))|\d{1,9}(?=[.)](?:\s|$)))")
"""The start of a text that Markdown would read as a heading, a quotation, a rule or a list."""


def escape(text: str) -> str:
    """The text on one line, escaped for use within a line of Markdown, not in bold."""
    return _MARKUP.sub(_escaped, printable(re.sub(r"\s+", " ", text)))


def _escaped(match: re.Match[str]) -> str:
    inner = match["inner"]
    return f"\\{match[0]}" if inner is None else f"[{_MARKUP.sub(_escaped, inner)}]"


def escape_line(text: str) -> str:
    """The text, escaped for use as a whole line."""
    return _BLOCK.sub(r"\g<0>\\", escape(text))


def bold(text: str) -> str:
    """The text in bold type; its asterisks are escaped."""
    inner = re.sub(r"(?<!\\)\*", r"\*", escape(text))
    return f"**{inner}**"


def table_row(texts: Iterable[str]) -> str:
    """A row of a table, without line end; the texts are Markdown."""
    return f"| {' | '.join(texts)} |"


def markdown(listing: Listing) -> str:
    """The listing as a table, with title and caption below the table."""
    columns = [column for column in texts_of(listing) if set(column.cells) != {ABSENT}]
    lines = [[escape(column.title) for column in columns]]
    lines.append(["---:" if column.right else "---" for column in columns])
    for index in range(len(listing.rows)):
        lines.append([(bold if column.strong[index] else escape)(column.cells[index]) for column in columns])
    text = "".join(f"{table_row(cells)}\n" for cells in lines)
    return text + "".join(f"\n{escape_line(line)}\n" for line in (listing.title, *listing.caption) if line)
