# SPDX-License-Identifier: Apache-2.0
"""The oracle's arithmetic of round-trip times (Flowcut §II-B), in the switch's fixed point and exactly.

A decision of the switch rests on numbers of 8 bits after the point, so it can be foretold only in the same
numbers; that these stay near the real ones is asserted with every sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

ONE = 256
"""1 in 8.8 fixed point, and the weight of a whole in alpha."""

MOST = 0x7FFF
_TICKS_ONE = 1 << 16


@dataclass
class Least:
    """r_min(h) of one switch, without transmission times. `known`: r_min(h) where it need not be observed, and what is
    added to it and to the RTT.
    """

    by_hops: dict[int, int]
    known: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def normalise(self, rtt: int, hops: int, nbytes: int, ticks_per_byte: int) -> Fraction:
        """r / (r_min(h) + p*h*t); p*h*t in whole ticks, and never more than what was measured."""
        transmission = nbytes * hops * ticks_per_byte // _TICKS_ONE
        rest = max(1, rtt - transmission)
        observed = self.by_hops[hops] = min(rest, self.by_hops.get(hops, rest))
        least, before = self.known.get(hops, (observed, 0))
        return Fraction(rest + transmission + before, least + transmission + before)


@dataclass
class Averages:
    """What a flowcut's ACKs have said so far; `alpha` of 256."""

    alpha: int
    samples: int = 0
    average: int = 0
    last: int = 0
    growth: int = 0
    exact_average: Fraction = Fraction(0)
    exact_growth: Fraction = Fraction(0)
    exact_last: Fraction = Fraction(0)

    def add(self, normalised: Fraction) -> None:
        """A sample: of less than 1 where a packet was faster than the baseline has it."""
        assert normalised > 0
        fixed = min(int(normalised * ONE), MOST)
        exact = min(normalised, Fraction(MOST, ONE))
        weight, rest = self.alpha, ONE - self.alpha
        if self.samples == 0:
            self.average, self.growth = fixed, 0
            self.exact_average, self.exact_growth = exact, Fraction(0)
        else:
            self.average = (weight * fixed + rest * self.average + ONE // 2) // ONE
            self.growth = (weight * (fixed - self.last) + rest * self.growth + ONE // 2) // ONE
            share = Fraction(weight, ONE)
            self.exact_average = share * exact + (1 - share) * self.exact_average
            self.exact_growth = share * (exact - self.exact_last) + (1 - share) * self.exact_growth
            # Fractions that grow with every sample would cost more than everything else
            self.exact_average = self.exact_average.limit_denominator(1 << 20)
            self.exact_growth = self.exact_growth.limit_denominator(1 << 20)
        self.last, self.exact_last = fixed, exact
        self.samples = min(self.samples + 1, 255)
        self._check()

    def _check(self) -> None:
        """Rounding down by less than 1/256 a sample, and rounding to the nearest 1/256 a step."""
        if self.alpha == 0:
            return
        bound = Fraction(1, ONE) + Fraction(1, 2 * self.alpha) + Fraction(1, ONE)
        assert abs(Fraction(self.average, ONE) - self.exact_average) <= bound
        assert abs(Fraction(self.growth, ONE) - self.exact_growth) <= bound
