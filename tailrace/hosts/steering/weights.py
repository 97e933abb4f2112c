# SPDX-License-Identifier: Apache-2.0
"""gen(w) of Spritz's Algorithm 1: draws an index by given weights, which may change at any time.

Weights are stored as integers, so that a restored weight is exactly what it was before, and a weight of 0 is
never drawn. Their sums are in a binary indexed tree (Fenwick, 1994): a draw or a change takes O(log n) steps.
"""

from __future__ import annotations

import random
from typing import Final

# The integer for the largest of the initial weights; others are exact to a millionth of it.
UNIT: Final = 1 << 20


class Weights:
    """A vector of weights.

    total: the sum of all integer weights.
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
        # a weight above 0 must not be rounded to 0
        return max(1, int(weight * self._unit + 0.5)) if weight > 0 else 0

    def draw(self, rng: random.Random) -> int:
        """Draws an index by the current weights; by the initial ones if all are 0 now."""
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
        """Whether this weight is 0."""
        return self._now[index] == 0

    def block(self, index: int) -> None:
        """Sets a weight to 0."""
        self._put(index, 0)

    def put(self, index: int, weight: float) -> None:
        self._put(index, self._parts(weight))

    def put_first_times(self, index: int, factor: int) -> None:
        """Sets a weight to a multiple of its initial value."""
        self._put(index, factor * self._first[index])

    def restore(self, index: int) -> None:
        """Sets a weight to its initial value."""
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
