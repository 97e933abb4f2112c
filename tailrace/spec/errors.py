# SPDX-License-Identifier: Apache-2.0
"""The base of all errors, and errors of specs that a user gave.

Error
└── SpecError
    ├── UnitError
    ├── ExpectedError
    │   └── ChoiceError
    ├── FileError
    └── KeyProblemError      of schema.py
"""

from __future__ import annotations

from pathlib import Path

from tailrace.spec.text import one_line

MOST_CHARACTERS = 1000
"""The longest message of an error."""


class Error(Exception):
    """The base of all errors of Tailrace. The text is one line for the user, of at most MOST_CHARACTERS, and
    printable even if it contains input.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(arg, MOST_CHARACTERS) if isinstance(arg, str) else arg for arg in args))


class SpecError(Error, ValueError):
    """Invalid input; its text is one line for the user, and commands end with exit status 2."""


class UnitError(SpecError):
    """A string that is no valid quantity, such as a time or a size."""


class ExpectedError(SpecError):
    """A string that is no valid value of a key; the message says what is expected, such as `at least 1`."""


class ChoiceError(ExpectedError):
    """A string that is none of the possible names; the message lists them, or the closest one."""


class FileError(SpecError):
    """A file cannot be read, or its content is not as expected."""

    def __init__(self, path: Path, where: str, problem: str) -> None:
        """Takes the file, the key or line in it (may be empty), and what is wrong or expected."""
        place = f"{path}: {where}" if where else str(path)
        super().__init__(f"{place}: {problem}")
