# SPDX-License-Identifier: Apache-2.0
"""gen(w) of Spritz's Algorithm 1: draws an index by given weights, which may change at any time.

Weights are stored as integers, so that a restored weight is exactly the initial weight, and an index of
weight 0 is never drawn. A binary indexed tree (Fenwick, 1994) contains their sums, so that a draw or a change
takes O(log n) steps.
"""

from __future__ import annotations

import random
from typing import Final

# The integer for the largest initial weight; the other integers are exact to a millionth of this weight.
UNIT: Final = 1 << 20


class Weights:
    """A vector of weights.

    total: the sum of all integer weights.
    """

    __slots__ = ("_current", "_initial", "_size", "_tree", "_unit", "total")

    def __init__(self, weights: tuple[float, ...]) -> None:
        """Args: weights: 0 or more, and not all 0."""
        self._unit: float = UNIT / max(weights)
        initial: list[int] = [self._scaled(weight) for weight in weights]
        size = 1
        while size < len(initial):
            size *= 2
        tree: list[int] = [0] + initial + [0] * (size - len(initial))
        for position in range(1, size):
            tree[position + (position & -position)] += tree[position]
        self._initial = initial
        self._current: list[int] = initial[:]
        self._tree: list[int] = tree
        self._size = size
        self.total: int = tree[size]

    def _scaled(self, weight: float) -> int:
        """The integer for a weight; a weight above 0 is not rounded to 0."""
        return max(1, int(weight * self._unit + 0.5)) if weight > 0 else 0

    def draw(self, rng: random.Random) -> int:
        """Draws an index by the current weights; by the initial weights if all current weights are 0."""
        number: float = rng.random()
        if self.total == 0:
            return self._draw_initial(number)
        tree = self._tree
        target = int(number * self.total)
        position = 0
        step = self._size >> 1
        while step:
            below = tree[position + step]  # sum of the weights position..position + step - 1
            if below <= target:
                target -= below
                position += step
            step >>= 1
        return position

    def _draw_initial(self, number: float) -> int:
        target = int(number * sum(self._initial))
        for position, weight in enumerate(self._initial):
            target -= weight
            if target < 0:
                return position
        return len(self._initial) - 1

    def is_zero(self, index: int) -> bool:
        """Whether this weight is 0."""
        return self._current[index] == 0

    def block(self, index: int) -> None:
        """Sets a weight to 0."""
        self._put(index, 0)

    def put(self, index: int, weight: float) -> None:
        self._put(index, self._scaled(weight))

    def put_first_times(self, index: int, factor: int) -> None:
        """Sets a weight to a multiple of its initial value."""
        self._put(index, factor * self._initial[index])

    def restore(self, index: int) -> None:
        """Sets a weight to its initial value."""
        self._put(index, self._initial[index])

    def _put(self, index: int, scaled: int) -> None:
        change = scaled - self._current[index]
        if change == 0:
            return
        self._current[index] = scaled
        tree, position = self._tree, index + 1
        while position <= self._size:
            tree[position] += change
            position += position & -position
        self.total += change
