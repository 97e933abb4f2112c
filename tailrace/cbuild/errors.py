# SPDX-License-Identifier: Apache-2.0
"""Errors of compiling C code and of the build cache."""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


class BuildError(Error):
    """Code could not be compiled, stored or loaded; the message is one line for the operator of this machine.

    The message may name folders and quote the compiler, so it must not be sent to P4Runtime clients.
    """

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class RefusedSourceError(BuildError):
    """The C compiler ran and rejected the source: the fault is in the source, not in this machine."""
