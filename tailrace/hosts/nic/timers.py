# SPDX-License-Identifier: Apache-2.0
"""The timers of a NIC: one for each queue pair, set as rarely as possible, and one for each flow's start."""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER
from tailrace.codec.timer_heap import new_timer_heap
from tailrace.hosts.nic.queue_pair import QueuePair
from tailrace.hosts.nic.queue_pairs import QueuePairs

NO_TIMER: Final = -1
START: Final = 1 << 60
"""The id of a timer for the start of a flow is START | peer. Handles of queue pairs are less than START."""


class Timers:
    """The timers, by time; timers of removed queue pairs are ignored.

    ring_ns: when the first timer expires; that timer may be stale, that is, replaced by an earlier timer.
    """

    def __init__(self, queue_pairs: QueuePairs) -> None:
        """Args: queue_pairs: the NIC's queue pairs."""
        self.ring_ns = NEVER
        self._queue_pairs = queue_pairs
        self._heap = new_timer_heap()
        # bound methods, looked up once: they are called for nearly every packet
        self._set, self._due = self._heap.set, self._heap.due

    def arm(self, end: QueuePair) -> None:
        """Sets a queue pair's timer to its deadline, unless the timer expires earlier.

        When such an early timer expires, the NIC calls this method again.
        """
        deadline_ns = end.deadline_ns()
        if deadline_ns < end.timer_ns:
            end.timer_ns = deadline_ns
            self._push(deadline_ns, end.handle)

    def start(self, start_ns: int, peer: int) -> None:
        """Sets the timer for the start of the flow to a peer."""
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
            # if the timer was set again, for an earlier time, this entry is stale (due_ns: the entry's time)
            if end is not None and end.timer_ns == self._heap.due_ns:
                end.timer_ns = NEVER
                return timer_id
        first_ns = self._heap.first_ns
        self.ring_ns = NEVER if first_ns is None else first_ns
        return NO_TIMER
