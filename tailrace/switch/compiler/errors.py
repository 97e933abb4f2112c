# SPDX-License-Identifier: Apache-2.0
"""The errors of the compiler."""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


def at(*places: str) -> str:
    """The path of a construct, from the file on; empty parts are left out."""
    return ": ".join(place for place in places if place)


class CompilerError(Error):
    """A program that cannot be loaded: bad JSON, or a construct the switch does not have.

    The text is one line that names the file and the construct; names of the program in it are made printable.
    """

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class NotCompiledError(CompilerError):
    """The C text of a program could not be compiled or loaded.

    The text is for the operator: it may quote the compiler and name folders. `refused`: the C compiler ran
    and refused the text, so that it is the program's fault and not the machine's.
    """

    def __init__(self, text: str, *, refused: bool) -> None:
        super().__init__(text)
        self.refused = refused
