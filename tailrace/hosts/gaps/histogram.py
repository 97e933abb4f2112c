# SPDX-License-Identifier: Apache-2.0
"""How long gaps between packets are: a histogram of any length in bounded space.

A gap below 2^8 ns has a bin of its own. Beyond, each power of two is divided into 2^7 bins, so a bin is at
most 1/128 as wide as its least gap is long. There are no more than MOST_BINS of them, however many gaps are
counted, and no gap moves another: the same gaps in any order make the same histogram.

Integers only, so that it is the same on every machine, and a run with it: sketches of the libraries
(t-digest, KLL, DDSketch) work in floating point, draw random numbers, or go by the order of the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_FRACTION_BITS: Final = 7
_EXACT_BITS: Final = _FRACTION_BITS + 1
MOST_BITS: Final = 61
"""Gaps are taken for at most 2^61 - 1 ns, which is 73 years."""

MOST_GAP_NS: Final = (1 << MOST_BITS) - 1
MOST_BINS: Final = (1 << _FRACTION_BITS) * (MOST_BITS - _FRACTION_BITS + 1)
PERMYRIAD: Final = 10_000
"""Shares of all gaps are in this many parts (permyriads)."""


Bin = tuple[int, int]
"""The least gap of a bin in ns, and how many gaps are in it."""


def merged_bins(histograms: Iterable[Iterable[Bin]]) -> list[Bin]:
    """The bins of all histograms together, ascending."""
    counts: dict[int, int] = {}
    for bins in histograms:
        for least_ns, count in bins:
            counts[least_ns] = counts.get(least_ns, 0) + count
    return sorted(counts.items())


def bin_of(gap_ns: int) -> int:
    """The number of the bin of a gap, 0..MOST_GAP_NS; bins are numbered as gaps ascend."""
    bits = gap_ns.bit_length()
    if bits <= _EXACT_BITS:
        return gap_ns
    shift = bits - _EXACT_BITS
    return (shift << _FRACTION_BITS) + (gap_ns >> shift)


def low_ns(number: int) -> int:
    """The least gap of a bin; that of the next bin is one more than the greatest."""
    shift = (number >> _FRACTION_BITS) - 1
    if shift <= 0:
        return number
    return (number - (shift << _FRACTION_BITS)) << shift


class GapHistogram:
    """Counts gaps.

    count: how many there are.
    """

    __slots__ = ("_bins", "count")

    def __init__(self, counts: Iterable[int] = ()) -> None:
        """Of as many gaps as `counts` says of each bin, from the first one on."""
        self._bins: list[int] = list(counts)  # as many as the longest gap needs
        self.count = sum(self._bins)

    def add(self, gap_ns: int) -> None:
        """One gap, 0 or more ns."""
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
        """The gap that so many of 10000 gaps do not reach: what is as long or longer is the rest at most.

        Returns:
            The least bin's lower edge T with count(gap >= T) <= count * (1 - permyriad/10000): that is kept
            exactly. The least number q that keeps it may be shorter: q <= T <= q * (1 + 1/128), and T is q
            below 256 ns. 0 without any gap.
        """
        rest = self.count * (PERMYRIAD - permyriad) // PERMYRIAD
        bins = self._bins
        number = len(bins)
        while number > 0 and rest >= bins[number - 1]:
            number -= 1
            rest -= bins[number]
        # a bin that is empty holds nothing back, so what stands here is the end of one that is not
        return low_ns(number)

    def at_least(self, gap_ns: int) -> int:
        """How many gaps are as long or longer, in whole bins: gaps from the first bin's edge on that is not
        shorter, which is at most 1/128 longer.
        """
        bins = self._bins
        number = bin_of(min(gap_ns, MOST_GAP_NS))
        if low_ns(number) < gap_ns:
            number += 1
        return sum(bins[number:])

    def bins(self) -> list[Bin]:
        """The least gap of each bin that is not empty, in ns, and how many gaps are in it; ascending."""
        return [(low_ns(number), count) for number, count in enumerate(self._bins) if count]

    def clear(self) -> None:
        self._bins = []
        self.count = 0
