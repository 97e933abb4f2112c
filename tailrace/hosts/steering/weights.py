# SPDX-License-Identifier: Apache-2.0
"""gen(w) of Spritz's Algorithm 1: draws a number with given weights, any of which may change at any time.

The weights are whole numbers, so that one that is set back is what it was before, and 0 is never drawn. Sums
of them lie in a binary indexed tree (Fenwick, 1994): drawing and changing take as many steps as the number of
weights has bits.
"""

from __future__ import annotations

import random
from typing import Final

# What the largest of the first weights becomes: others are exact to a millionth of it.
UNIT: Final = 1 << 20


class Weights:
    """A vector of weights.

    total: the sum of all weights, in parts of which `unit` make 1.
    """

    __slots__ = ("_first", "_now", "_size", "_tree", "_unit", "total")

    def __init__(self, weights: tuple[float, ...]) -> None:
        """Args: weights: 0 or more, and not all 0."""
        self._unit: float = UNIT / max(weights)
        first: list[int] = [self._parts(weight) for weight in weights]
        size = 1
        while size < len(first):
            size *= 2
        tree: list[int] = [0] + first + [0] * (size - len(first))
        for position in range(1, size):
            tree[position + (position & -position)] += tree[position]
        self._first = first
        self._now: list[int] = first[:]
        self._tree: list[int] = tree
        self._size = size
        self.total: int = tree[size]

    def _parts(self, weight: float) -> int:
        # however small a weight is, it is more than 0
        return max(1, int(weight * self._unit + 0.5)) if weight > 0 else 0

    def draw(self, rng: random.Random) -> int:
        """An index, by the weights; by the first ones, if all are 0 now."""
        number: float = rng.random()
        if self.total == 0:
            return self._draw_first(number)
        tree = self._tree
        target = int(number * self.total)
        position = 0
        step = self._size >> 1
        while step:
            below = tree[position + step]
            if below <= target:
                target -= below
                position += step
            step >>= 1
        return position

    def _draw_first(self, number: float) -> int:
        target = int(number * sum(self._first))
        for position, weight in enumerate(self._first):
            target -= weight
            if target < 0:
                return position
        return len(self._first) - 1

    def is_zero(self, index: int) -> bool:
        """Whether this one is never drawn."""
        return self._now[index] == 0

    def block(self, index: int) -> None:
        """Sets a weight to 0."""
        self._put(index, 0)

    def put(self, index: int, weight: float) -> None:
        self._put(index, self._parts(weight))

    def put_first_times(self, index: int, factor: int) -> None:
        """Sets a weight to a multiple of what it was first."""
        self._put(index, factor * self._first[index])

    def restore(self, index: int) -> None:
        """Sets a weight to what it was first."""
        self._put(index, self._first[index])

    def _put(self, index: int, parts: int) -> None:
        change = parts - self._now[index]
        if change == 0:
            return
        self._now[index] = parts
        tree, position = self._tree, index + 1
        while position <= self._size:
            tree[position] += change
            position += position & -position
        self.total += change
