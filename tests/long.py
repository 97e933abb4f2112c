# SPDX-License-Identifier: Apache-2.0
"""What takes long and shows nothing else than its neighbours: `make test` has a part of it, `make test-all` all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

ALL = os.environ.get("TAILRACE_TESTS") == "all"

long = pytest.mark.long
"""For a test, or a parameter of one, whose property a shorter one shows as well."""

_T = TypeVar("_T")


def some(cases: Sequence[_T], each: int) -> Sequence[_T]:
    """Each second, third … of the cases, the first among them; all of them in `make test-all`."""
    return cases if ALL else cases[::each]


def more(*cases: _T) -> tuple[_T, ...]:
    """Cases that `make test-all` has beside the others."""
    return cases if ALL else ()


def times(number: int, less: int) -> int:
    """So many examples, seeds or rounds in `make test-all`, else that divided by `less`."""
    return number if ALL else max(1, number // less)
