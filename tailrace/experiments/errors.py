# SPDX-License-Identifier: Apache-2.0
"""Errors of experiments; each is one line that a user understands.

SpecError            bad words (spec/)                                    exit 2
├── FileError        bad experiment or workload file: file, key or line   exit 2
├── KeyProblemError  bad value of a key or option (schema.py)             exit 2
└── TargetError      the wanted target cannot run on this machine         exit 2
RunError             the run itself failed                                exit 1
KeyboardInterrupt
└── Interrupted      a signal asked to stop (signals.py)                  exit 1
"""

from __future__ import annotations

from pathlib import Path

from tailrace.words import SpecError


class FileError(SpecError):
    """Something in a file is not as expected."""

    def __init__(self, path: Path, where: str, problem: str) -> None:
        """Name the file, the key or line in it (may be empty), and what is wrong or expected."""
        place = f"{path}: {where}" if where else str(path)
        super().__init__(f"{place}: {problem}")


class TargetError(SpecError):
    """What the wanted target needs is not here: a program, Mininet, or the right to use it."""


class RunError(RuntimeError):
    """A run that could not be finished."""
