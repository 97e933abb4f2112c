# SPDX-License-Identifier: Apache-2.0
"""The timers of a NIC: one for each end of a flow, set as rarely as possible."""

from __future__ import annotations

import heapq

from tailrace.codec.calls import NEVER
from tailrace.hosts.nic.end import FlowEnd


class Timers:
    """Which end of a flow must be looked at next.

    ring_ns: when the first timer rings; now and then there is nothing to do then.
    """

    def __init__(self) -> None:
        self.ring_ns = NEVER
        self._heap: list[tuple[int, int, FlowEnd]] = []
        self._number = 0  # equal times ring in the order in which they were set

    def arm(self, end: FlowEnd) -> None:
        """Sets a flow's timer, unless it rings early enough: then it is set again when it rings."""
        deadline_ns = end.deadline_ns()
        if deadline_ns < end.timer_ns:
            end.timer_ns = deadline_ns
            self._number += 1
            heapq.heappush(self._heap, (deadline_ns, self._number, end))
            if deadline_ns < self.ring_ns:
                self.ring_ns = deadline_ns

    def next_due(self, now_ns: int) -> FlowEnd | None:
        """Takes off the next end whose time has come; None: there is no more."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            time_ns, _, end = heapq.heappop(heap)
            # one that was set for an earlier time since is no more
            if end.timer_ns == time_ns:
                end.timer_ns = NEVER
                return end
        self.ring_ns = heap[0][0] if heap else NEVER
        return None
