# SPDX-License-Identifier: Apache-2.0
"""The event queue: what happens when, and in which order at one time.

Ties are broken by rank, then by order of scheduling. A rank is a class and the number of a wire, switch or
host, so that the order at one time follows from the network alone and not from how the run was cut in pieces.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum
from typing import Any

Handler = Callable[[int, Any], None]
"""handler(now_ns, argument)"""

Event = tuple[int, int, int, Handler, Any]
"""(time_ns, rank, sequence, handler, argument); the sequence is unique, so the rest is never compared."""

_CLASS_BITS = 24


class RankClass(IntEnum):
    """Classes of events, in the order in which they happen at one time."""

    CONTROL = 0
    ARRIVAL = 1
    SWITCH = 2
    HOST = 3


def rank(kind: RankClass, number: int) -> int:
    """The rank of events of a class at one wire, switch or host."""
    return kind << _CLASS_BITS | number


class EventQueue:
    """A heap of events.

    `traffic` counts events that carry packets: arrivals and switches at work. When it is 0 and the hosts are
    idle, the network is at rest whatever timers remain.
    """

    def __init__(self) -> None:
        self.heap: list[Event] = []
        self.traffic = 0
        self._sequence = 0

    def push(self, time_ns: int, event_rank: int, handler: Handler, argument: Any = None) -> None:
        """Schedules a call of `handler`."""
        self._sequence += 1
        heapq.heappush(self.heap, (time_ns, event_rank, self._sequence, handler, argument))

    def push_traffic(self, time_ns: int, event_rank: int, handler: Handler, argument: Any = None) -> None:
        """Schedules a call that carries packets; the handler takes 1 off `traffic` when it is called."""
        self.traffic += 1
        self.push(time_ns, event_rank, handler, argument)
