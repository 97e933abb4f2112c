# SPDX-License-Identifier: Apache-2.0
"""The syntax of seeds: a number, a range, several of these separated by commas, or a list of numbers:
3   1..10   1..3,7   [1, 2]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.spec import SpecError
from tailrace.spec.text import shortened

MOST_SEED = (1 << 63) - 1
"""The largest integer that every TOML and JSON reader supports."""

MOST_SEEDS = 1000
"""Most seeds of one experiment; each is a run."""

EXPECTED = f"a whole number from 0 to 2**63 - 1, or at most {MOST_SEEDS} of them such as '1..10' or '1,3,5'"

_NUMBERS = re.compile(r"([0-9]{1,19})(?:\.\.([0-9]{1,19}))?")
_MOST_SHOWN = 60


def number_range(text: str) -> tuple[int, int] | None:
    """The first and the last number of FIRST..LAST; None for any other string."""
    match = _NUMBERS.fullmatch(text)
    return None if match is None or match[2] is None else (int(match[1]), int(match[2]))


def parse_seeds(value: int | str | Sequence[int]) -> tuple[int, ...]:
    """The seeds that a number, a string or a list of numbers describes, in their order.

    Raises:
        SpecError: there are no seeds, too many, or one is given twice.
    """
    pieces = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else value
    problem = f"expected {EXPECTED}, found {shortened(repr(value), _MOST_SHOWN)}"
    seeds: list[int] = []
    for piece in pieces:
        match = _NUMBERS.fullmatch(str(piece).strip())
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if not first <= last <= MOST_SEED or last - first >= MOST_SEEDS - len(seeds):
            raise SpecError(problem)
        seeds += range(first, last + 1)
    if not seeds:
        raise SpecError(problem)
    for seed in seeds:
        if seeds.count(seed) > 1:
            raise SpecError(f"{seed} is given twice")
    return tuple(seeds)


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as a string for `parse_seeds`, with consecutive seeds as a range."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    texts = [f"{run[0]}..{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ",".join(texts)
