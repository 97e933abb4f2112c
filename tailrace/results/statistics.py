# SPDX-License-Identifier: Apache-2.0
"""Statistics of measured values.

A percentile is a measured value itself, never one in between: the smallest that at least p % of the values do
not exceed (nearest rank). With 8 flows the 99th percentile is therefore the slowest flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Number = TypeVar("Number", int, float)

P99_FLOWS = 1000
"""From so many flows on a 99th percentile is shown: it is then one of ten flows, and not the slowest."""

P95_FLOWS = 200
"""From so many on a 95th, for the same reason; of fewer the largest value."""


def tail_percent(flows: int) -> int:
    """The percentile that stands for the tail of so many flows: 99, 95, or 100, the largest."""
    return 99 if flows >= P99_FLOWS else 95 if flows >= P95_FLOWS else 100


TAILS = (99, 95, 100)
"""What `tail_percent` may say."""


def tail_name(percent: int) -> str:
    """What such a percentile is called."""
    return "max" if percent == 100 else f"p{percent}"


def tail_note(flows: int) -> str:
    """What a reader must know where no p99 is shown; empty where one is."""
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
    """Points of the empirical distribution: the sorted values, and the share of all `total` up to each.

    With fewer values than `total` (flows that did not finish) the shares end below 1.
    """
    ordered = sorted(float(value) for value in values)
    return ordered, [(rank + 1) / total for rank in range(len(ordered))]
