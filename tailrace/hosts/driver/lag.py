# SPDX-License-Identifier: Apache-2.0
"""How late things were done: a histogram of any length in constant space."""

from __future__ import annotations

# A power of two is divided into 2^3 bins, so a quantile is at most an eighth too large.
_FRACTION_BITS = 3
_BINS = 64 << _FRACTION_BITS


def _bin(lag_ns: int) -> int:
    shift = max(0, lag_ns.bit_length() - 1 - _FRACTION_BITS)
    return (shift << _FRACTION_BITS) + (lag_ns >> shift)


def _largest_ns(number: int) -> int:
    """The longest delay in a bin."""
    shift = max(0, (number >> _FRACTION_BITS) - 1)
    return ((number - (shift << _FRACTION_BITS) + 1) << shift) - 1


class Lag:
    """Counts delays."""

    def __init__(self) -> None:
        """Nothing counted."""
        self._bins = [0] * _BINS
        self.count = 0
        self.max_ns = 0

    def add(self, lag_ns: int) -> None:
        """One delay, 0..2^63 ns."""
        self._bins[_bin(lag_ns)] += 1
        self.count += 1
        self.max_ns = max(self.max_ns, lag_ns)

    def quantile_ns(self, share: float) -> int:
        """A bound that this share of all delays keeps, at most an eighth too large; 0 without any."""
        rest = share * self.count
        for number, count in enumerate(self._bins):
            rest -= count
            if count and rest <= 0:
                return min(_largest_ns(number), self.max_ns)
        return self.max_ns
