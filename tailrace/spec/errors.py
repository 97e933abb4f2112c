# SPDX-License-Identifier: Apache-2.0
"""The base of all errors, and what is wrong with specs that a user gave.

Error                        whatever a user may be told, in one line
└── SpecError                a spec, key or value that cannot be used
    ├── UnitError            a text that is no such quantity
    ├── ExpectedError        a text that is no value of a key
    │   └── ChoiceError      a text that is none of some names
    ├── FileError            a file: its name, the key or line, what was expected
    └── KeyProblemError      a value of a key or option (schema.py)
"""

from __future__ import annotations

from pathlib import Path

from tailrace.spec.text import one_line

MOST_CHARACTERS = 1000
"""Of the line of an error."""


class Error(Exception):
    """Anything that Tailrace tells of itself; the text is one line for the user, of at most MOST_CHARACTERS,
    all of them to be seen, whatever it repeats of what was given.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(arg, MOST_CHARACTERS) if isinstance(arg, str) else arg for arg in args))


class SpecError(Error, ValueError):
    """Input that cannot be used; its text is one line for the user, who gets exit status 2."""


class UnitError(SpecError):
    """A text that is no such quantity."""


class ExpectedError(SpecError):
    """A text that is no value of a key; the error's own text says what is expected, such as `at least 1`."""


class ChoiceError(ExpectedError):
    """A text that is none of some names; the error's own text names them, or the closest."""


class FileError(SpecError):
    """Something in a file is not as expected."""

    def __init__(self, path: Path, where: str, problem: str) -> None:
        """Name the file, the key or line in it (may be empty), and what is wrong or expected."""
        place = f"{path}: {where}" if where else str(path)
        super().__init__(f"{place}: {problem}")
