# SPDX-License-Identifier: Apache-2.0
"""Makes untrusted text, such as names in a program or messages of a client, safe to show: it cannot move the
cursor, change a terminal's colours or begin a line.
"""

from __future__ import annotations

import json

ELLIPSIS = "..."
LINE_CHARS = 300
"""The longest message to an operator or a client."""


def printable(text: str) -> str:
    """The text with every unprintable character (control, format, surrogate) escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, most: int) -> str:
    """The text, cut after `most` characters."""
    return text if len(text) <= most else text[:most] + ELLIPSIS


def json_text(value: object, indent: int | None = None) -> str:
    """JSON with every unprintable character escaped, also those that JSON allows unescaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    # outside of strings there are only printable characters and line ends
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    octets = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{octets[i : i + 2].hex()}" for i in range(0, len(octets), 2))


def one_line(text: str, most: int = LINE_CHARS) -> str:
    """The text on one line of at most `most` characters; runs of white space become one space."""
    # the first 4 * most characters suffice, as an escape is never shorter than its character
    line = printable(" ".join(text[: 4 * most].split()))
    if len(line) <= most and len(text) <= 4 * most:
        return line
    return line[: most - len(ELLIPSIS)] + ELLIPSIS
