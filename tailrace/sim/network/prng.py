# SPDX-License-Identifier: Apache-2.0
"""SplitMix64: a generator of a few lines that gives the same numbers in every language.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class SplitMix64:
    """A stream of 64-bit numbers. Seeds that differ in any part give streams that have nothing in common."""

    def __init__(self, *seed: int) -> None:
        self._state = 0
        for part in seed:
            self._state ^= part & _MASK
            self._state = self.next()

    @property
    def state(self) -> int:
        """From which all numbers to come follow."""
        return self._state

    def next(self) -> int:
        """The next number, uniform from 0 to 2**64 - 1."""
        self._state = (self._state + _GAMMA) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)


def threshold(rate: float) -> int:
    """The number below which one of a `rate` share of all numbers lies (0 to 1)."""
    return round(rate * (1 << 64))
