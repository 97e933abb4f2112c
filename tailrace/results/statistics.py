# SPDX-License-Identifier: Apache-2.0
"""Statistics of measured values.

The p-th percentile is the smallest measured value such that at least p % of the values are at most as large
(nearest rank, without interpolation). So with 8 flows the 99th percentile is the slowest flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Number = TypeVar("Number", int, float)

P99_FLOWS = 1000
"""Fewest flows for which a 99th percentile is shown: ten flows then rank above the percentile."""

P95_FLOWS = 200
"""Fewest flows for which a 95th percentile is shown, for the same reason; with fewer the maximum is shown."""


def tail_percent(flows: int) -> int:
    """The percentile to show as the tail of `flows` flows: 99, 95, or 100, which is the maximum."""
    return 99 if flows >= P99_FLOWS else 95 if flows >= P95_FLOWS else 100


TAILS = (99, 95, 100)
"""The possible results of `tail_percent`."""


def tail_name(percent: int) -> str:
    """The name of a percentile in metrics: `p99`, `p95` or `max`."""
    return "max" if percent == 100 else f"p{percent}"


def tail_note(flows: int) -> str:
    """A note for the reader if no p99 is shown; empty if it is."""
    percent = tail_percent(flows)
    if percent == 99:
        return ""
    shown = "the largest of a run" if percent == 100 else "the p95"
    return f"{shown} instead of a p99, which takes {P99_FLOWS:,} flows: there are {flows:,}"


def percentile(values: Sequence[Number], percent: int) -> Number:
    """The nearest-rank percentile.

    Args:
        values: at least one value, in any order.
        percent: from 1 to 100.

    Raises:
        ValueError: no values, or a percentage out of range.
    """
    if not values:
        raise ValueError("percentile of no values")
    if not 1 <= percent <= 100:
        raise ValueError(f"percentile {percent} is not from 1 to 100")
    rank = -(-percent * len(values) // 100)
    return sorted(values)[rank - 1]


def mean(values: Sequence[int] | Sequence[float]) -> float:
    """The arithmetic mean of at least one value.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("mean of no values")
    return sum(values) / len(values)


def cumulative(values: Sequence[int] | Sequence[float], total: int) -> tuple[list[float], list[float]]:
    """Points of the empirical distribution: the sorted values, and for each the share of `total` up to it.

    If some flows did not finish, there are fewer values than `total`, and the last share is below 1.
    """
    ordered = sorted(float(value) for value in values)
    return ordered, [(rank + 1) / total for rank in range(len(ordered))]
