# SPDX-License-Identifier: Apache-2.0
"""A histogram of the lengths of gaps between packets, in bounded memory.

Each length below 2^8 ns has a bin of its own. Beyond that, each power of two is divided into 2^7 bins, so the
width of a bin is at most 1/128 of its lower edge. There are at most MOST_BINS bins for any number of gaps,
and the same gaps in any order make the same histogram.

The histogram uses integers only, so that runs are the same on every machine. The sketches of libraries
(t-digest, KLL, DDSketch) use floating point or random numbers, or depend on the order of the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_FRACTION_BITS: Final = 7
_EXACT_BITS: Final = _FRACTION_BITS + 1
MOST_BITS: Final = 61
"""Longer gaps are counted as 2^61 - 1 ns, which is 73 years."""

MOST_GAP_NS: Final = (1 << MOST_BITS) - 1
MOST_BINS: Final = (1 << _FRACTION_BITS) * (MOST_BITS - _FRACTION_BITS + 1)
PERMYRIAD: Final = 10_000
"""Shares of all gaps are integers in units of 1/10,000 (permyriads)."""


Bin = tuple[int, int]
"""The lower edge of a bin in ns, and the number of gaps in it."""


def merged_bins(histograms: Iterable[Iterable[Bin]]) -> list[Bin]:
    """The sum of several histograms, with ascending bins."""
    counts: dict[int, int] = {}
    for bins in histograms:
        for least_ns, count in bins:
            counts[least_ns] = counts.get(least_ns, 0) + count
    return sorted(counts.items())


def bin_of(gap_ns: int) -> int:
    """The index of the bin of a gap of 0..MOST_GAP_NS; bins of longer gaps have larger indices."""
    bits = gap_ns.bit_length()
    if bits <= _EXACT_BITS:
        return gap_ns
    shift = bits - _EXACT_BITS  # `gap_ns >> shift` is from 2^7 to 2^8 - 1
    return (shift << _FRACTION_BITS) + (gap_ns >> shift)


def low_ns(number: int) -> int:
    """The lower edge of the bin with this index."""
    shift = (number >> _FRACTION_BITS) - 1
    if shift <= 0:
        return number
    return (number - (shift << _FRACTION_BITS)) << shift


class GapHistogram:
    """Counts gaps.

    count: number of gaps.
    """

    __slots__ = ("_bins", "count")

    def __init__(self, counts: Iterable[int] = ()) -> None:
        """`counts`: number of gaps in each bin, by index."""
        self._bins: list[int] = list(counts)  # up to the bin of the longest gap
        self.count = sum(self._bins)

    def add(self, gap_ns: int) -> None:
        """Adds a gap of 0 or more ns."""
        if gap_ns > MOST_GAP_NS:
            gap_ns = MOST_GAP_NS
        number = bin_of(gap_ns)
        bins = self._bins
        missing = number + 1 - len(bins)
        if missing > 0:
            bins.extend([0] * missing)
        bins[number] += 1
        self.count += 1

    def quantile_ns(self, permyriad: int) -> int:
        """An upper bound of the quantile at permyriad/10000: only the remaining share of gaps are longer.

        Returns:
            The smallest lower edge T of a bin such that count(gap >= T) <= count * (1 - permyriad/10000). If
            q is the smallest integer of which the same is true, then q <= T <= q * (1 + 1/128), and T = q
            below 256 ns. 0 if there is no gap.
        """
        rest = self.count * (PERMYRIAD - permyriad) // PERMYRIAD
        bins = self._bins
        number = len(bins)
        while number > 0 and rest >= bins[number - 1]:
            number -= 1
            rest -= bins[number]
        # the loop also passes empty bins, so it stops at the upper edge of a bin that is not empty
        return low_ns(number)

    def bins(self) -> list[Bin]:
        """The bins that are not empty, ascending."""
        return [(low_ns(number), count) for number, count in enumerate(self._bins) if count]

    def clear(self) -> None:
        self._bins = []
        self.count = 0
