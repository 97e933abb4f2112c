# SPDX-License-Identifier: Apache-2.0
"""How values are spread, in bounded space: what percentiles over the flows of several runs need of each run.

The bins are those of the gaps between packets (tailrace/hosts/gaps/histogram.py), a 128th of their values
wide at most. Where more than MOST_BINS of them are filled, neighbours become one, all over, until they are
not (the uniform collapse of UDDSketch, Epicoco et al., 2020, §III), so that the relative error is the same
for every percentile: at most 1/256 of the value, and twice that for each halving. Sketches of several runs
put together are the sketch of all their values: order and grouping do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.hosts.gaps.histogram import MOST_BINS as BINS
from tailrace.hosts.gaps.histogram import MOST_GAP_NS, bin_of, low_ns

MOST_BINS = 256
"""Of a sketch: enough for two powers of two without a halving, and for sixteen with three."""

MOST_HALVINGS = 7
"""A power of two is one bin then."""


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """Whole numbers from 0 on, counted in bins.

    halvings: how often neighbouring bins were made one
    steps: how many bins on from the one before, and how many values are in it, by turns; the first from 0 on
    """

    halvings: Annotated[int, Meta(ge=0, le=MOST_HALVINGS)]
    steps: Annotated[tuple[Annotated[int, Meta(ge=0, le=1 << 53)], ...], Meta(max_length=2 * MOST_BINS)]

    def __post_init__(self) -> None:
        """Raises ValueError where steps are none of a sketch."""
        if len(self.steps) % 2 or 0 in self.steps[1:]:
            raise ValueError("expected pairs of numbers, a step of at least one bin and how many are in it")
        if sum(self.steps[::2]) << self.halvings >= BINS:
            raise ValueError(f"expected bins below {BINS}")

    @classmethod
    def of(cls, values: Iterable[int]) -> Sketch:
        """The sketch of some values, each from 0 on."""
        return cls._of_counts(Counter(bin_of(min(value, MOST_GAP_NS)) for value in values), 0)

    @classmethod
    def merged(cls, sketches: Iterable[Sketch]) -> Sketch:
        """The sketch of the values of all of them."""
        every = list(sketches)
        halvings = max((one.halvings for one in every), default=0)
        counts: Counter[int] = Counter()
        for one in every:
            for number, count in one.counts.items():
                counts[number >> (halvings - one.halvings)] += count
        return cls._of_counts(counts, halvings)

    @classmethod
    def _of_counts(cls, counts: Mapping[int, int], halvings: int) -> Sketch:
        while len(counts) > MOST_BINS:
            halved: Counter[int] = Counter()
            for number, count in counts.items():
                halved[number >> 1] += count
            counts, halvings = halved, halvings + 1
        steps, last = list[int](), 0
        for number in sorted(counts):
            steps += (number - last, counts[number])
            last = number
        return cls(halvings, tuple(steps))

    @property
    def counts(self) -> dict[int, int]:
        """How many values are in each bin that has any, ascending."""
        found, number = {}, 0
        for step, count in zip(self.steps[::2], self.steps[1::2], strict=True):
            number += step
            found[number] = count
        return found

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.steps[1::2])

    @property
    def error(self) -> float:
        """How far a percentile is off at most, as a share of its value."""
        return float(2.0**self.halvings / 256)

    def percentile(self, percent: int) -> float:
        """The nearest-rank percentile, by the middle of its bin.

        Raises:
            ValueError: there are no values, or percent is not from 1 to 100.
        """
        if not 1 <= percent <= 100 or not self.steps:
            raise ValueError(f"percentile {percent} of {self.count} values")
        rank = -(-percent * self.count // 100)
        for number, count in self.counts.items():
            rank -= count
            if rank <= 0:
                ends = low_ns(number << self.halvings), low_ns((number + 1) << self.halvings) - 1
                return sum(ends) / 2
        raise AssertionError("the ranks end with the values")
