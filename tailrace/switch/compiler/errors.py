# SPDX-License-Identifier: Apache-2.0
"""The errors of the compiler."""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


def located(*places: str) -> str:
    """The nonempty parts of a message (file, path of the construct, problem), joined by colons."""
    return ": ".join(place for place in places if place)


class CompilerError(Error):
    """A program that cannot be loaded: invalid JSON, or a construct that the switch does not support.

    The text is one line that names the file and the construct; unprintable characters are escaped.
    """

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class NotCompiledError(CompilerError):
    """The C text of a program could not be compiled or loaded.

    The message is for the operator: it may quote the C compiler and name folders. `refused`: the C compiler
    ran and rejected the C text, so the cause is the program and not the machine.
    """

    def __init__(self, text: str, *, refused: bool) -> None:
        super().__init__(text)
        self.refused = refused
