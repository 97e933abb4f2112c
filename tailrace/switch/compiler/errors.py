# SPDX-License-Identifier: Apache-2.0
"""The errors of the compiler."""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


def located(*places: str) -> str:
    """The parts of a message, joined by colons: file, path of the construct, problem; empty ones left out."""
    return ": ".join(place for place in places if place)


class CompilerError(Error):
    """A program that cannot be loaded: bad JSON, or a construct the switch does not have.

    The text is one line that names the file and the construct; unprintable characters are escaped.
    """

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class NotCompiledError(CompilerError):
    """The C text of a program could not be compiled or loaded.

    The message is for the operator: it may quote the C compiler and name folders. `refused`: the C compiler
    ran and rejected the C text, so the fault is the program's and not the machine's.
    """

    def __init__(self, text: str, *, refused: bool) -> None:
        super().__init__(text)
        self.refused = refused
