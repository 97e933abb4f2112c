# SPDX-License-Identifier: Apache-2.0
"""SplitMix64: a random number generator of a few lines, easy to implement identically in C and Python.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class SplitMix64:
    """A stream of 64-bit random numbers. Seeds that differ in any part give unrelated streams."""

    def __init__(self, *seed: int) -> None:
        self._state = 0
        for part in seed:
            self._state ^= part & _MASK
            self._state = self.next()

    @property
    def state(self) -> int:
        """The state, which determines all further numbers."""
        return self._state

    def next(self) -> int:
        """The next number, uniform from 0 to 2**64 - 1."""
        self._state = (self._state + _GAMMA) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)


def threshold(rate: float) -> int:
    """The threshold t for which a random 64-bit number is below t with probability `rate` (0 to 1)."""
    return round(rate * (1 << 64))
