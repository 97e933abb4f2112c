# SPDX-License-Identifier: Apache-2.0
"""The errors of building."""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


class BuildError(Error):
    """Something could not be compiled, or not be kept; one line for the operator of this machine.

    The text may name folders and quote the compiler: it is not for clients.
    """

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class RefusedSourceError(BuildError):
    """The C compiler ran and refused what it was given: another text would do, another machine would not."""
