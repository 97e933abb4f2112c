# SPDX-License-Identifier: Apache-2.0
"""The timers of a NIC: one for each queue pair, set as rarely as possible, and the starts of flows."""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER
from tailrace.codec.timer_heap import new_timer_heap
from tailrace.hosts.nic.queue_pair import QueuePair
from tailrace.hosts.nic.queue_pairs import QueuePairs

NO_TIMER: Final = -1
START: Final = 1 << 60
"""Stands above the peer of a flow that is to start; handles are smaller."""


class Timers:
    """The next queue pair whose timer rings; timers of removed queue pairs are dropped.

    ring_ns: when the first timer rings; it may be stale.
    """

    def __init__(self, queue_pairs: QueuePairs) -> None:
        """Args: queue_pairs: those of the NIC."""
        self.ring_ns = NEVER
        self._queue_pairs = queue_pairs
        self._heap = new_timer_heap()
        # bound once: they are called for nearly every packet
        self._set, self._due = self._heap.set, self._heap.due

    def arm(self, end: QueuePair) -> None:
        """Sets a flow's timer, unless it rings early enough: then it is set again when it rings."""
        deadline_ns = end.deadline_ns()
        if deadline_ns < end.timer_ns:
            end.timer_ns = deadline_ns
            self._push(deadline_ns, end.handle)

    def start(self, start_ns: int, peer: int) -> None:
        """Rings when the flow to a peer may start."""
        self._push(start_ns, START | peer)

    def _push(self, time_ns: int, timer_id: int) -> None:
        self._set(time_ns, timer_id)
        if time_ns < self.ring_ns:
            self.ring_ns = time_ns

    def next_due(self, now_ns: int) -> int:
        """Pops the next due timer: a handle, or START | peer; NO_TIMER: none is due."""
        while (timer_id := self._due(now_ns)) is not None:
            if timer_id & START:
                return timer_id
            end = self._queue_pairs.get(timer_id)
            # a timer that was set again for an earlier time is stale
            if end is not None and end.timer_ns == self._heap.due_ns:
                end.timer_ns = NEVER
                return timer_id
        first_ns = self._heap.first_ns
        self.ring_ns = NEVER if first_ns is None else first_ns
        return NO_TIMER
