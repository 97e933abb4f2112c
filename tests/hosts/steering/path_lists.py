# SPDX-License-Identifier: Apache-2.0
"""Random numbers that a test chooses, and path lists that it can reckon with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from tailrace.hosts.flows.paths import PathList


class Given(random.Random):
    """Gives these numbers, one after the other, over and over."""

    def __init__(self, numbers: Iterable[float]) -> None:
        super().__init__(0)
        self._numbers = list(numbers)
        self._position = -1

    def random(self) -> float:
        self._position = (self._position + 1) % len(self._numbers)
        return self._numbers[self._position]


def endless(numbers: list[float]) -> Iterator[float]:
    while True:
        yield from numbers


def path_list(*latencies_ps: int, weights: tuple[float, ...] = (), first_ev: int = 500) -> PathList:
    """EVs from 500 on; weights of eq. 1 unless they are given."""
    longest = max(latencies_ps)
    return PathList(
        tuple(range(first_ev, first_ev + len(latencies_ps))),
        latencies_ps,
        weights or tuple(longest / latency for latency in latencies_ps),
    )
