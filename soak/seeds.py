# SPDX-License-Identifier: Apache-2.0
"""Ranges of seeds as the commands of this folder take them."""

from __future__ import annotations

from tailrace.experiments.plan.seeds import number_range
from tailrace.words import SpecError


def seeds_of(text: str) -> range:
    """The seeds of A..B, or of one number.

    Raises:
        SpecError: there are none.
    """
    first, last = number_range(text if ".." in text else f"{text}..{text}") or (0, -1)
    if last < first:
        raise SpecError(f"--seeds: expected A..B, found {text[:40]!r}")
    return range(first, last + 1)
