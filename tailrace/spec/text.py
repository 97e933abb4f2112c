# SPDX-License-Identifier: Apache-2.0
"""Untrusted text - names of a program, messages of a client - made safe to show: nothing in it moves a
cursor, colours a terminal or begins a line.
"""

from __future__ import annotations

import json

ELLIPSIS = "..."
LINE_CHARS = 300
"""Of a message to an operator or a client."""


def printable(text: str) -> str:
    """The text with every character that is not to be seen (control, format, surrogate) as its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def json_text(value: object, indent: int | None = None) -> str:
    """JSON in which every character is to be seen: others, which JSON allows as they are, are its escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    # all that stands outside of strings is printable, or an end of a line
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    octets = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{octets[i : i + 2].hex()}" for i in range(0, len(octets), 2))


def one_line(text: str, most: int = LINE_CHARS) -> str:
    """The text on one line of at most `most` characters: runs of white space are one space."""
    # what is cut off need not be looked at: an escape is longer than what it stands for, and never shorter
    line = printable(" ".join(text[: 4 * most].split()))
    if len(line) <= most and len(text) <= 4 * most:
        return line
    return line[: most - len(ELLIPSIS)] + ELLIPSIS
