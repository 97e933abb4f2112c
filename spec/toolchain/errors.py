# SPDX-License-Identifier: Apache-2.0
"""The one error of building, and text of others made fit for a line."""

from __future__ import annotations

LINE_CHARS = 300


def plain(text: str, limit: int = LINE_CHARS) -> str:
    """Anybody's text as one line: what cannot be printed is escaped, what is too long is cut.

    The result holds no control characters, no line separators, no lone surrogates.
    """
    # a little more than the limit is looked at, so that a text of any length costs the same
    start = text[: limit + 1]
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return line if len(line) <= limit else line[: max(0, limit - 1)] + "…"


class BuildError(Exception):
    """Something could not be compiled, or not be kept; one line for the operator of this machine.

    The text may name folders and quote the compiler: it is not for clients.
    """

    def __init__(self, text: str) -> None:
        super().__init__(plain(text))


class RefusedSourceError(BuildError):
    """The C compiler ran and refused what it was given: another text would do, another machine would not."""
