# SPDX-License-Identifier: Apache-2.0
"""The timers of a NIC: one for each end of a flow, set as rarely as possible, and the starts of flows."""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER
from tailrace.codec.timer_heap import new_alarms
from tailrace.hosts.nic.queue_pair import FlowEnd
from tailrace.hosts.nic.queue_pairs import Ends

NOBODY: Final = -1
START: Final = 1 << 60
"""Stands above the peer of a flow that is to start; handles are smaller."""


class Timers:
    """Which end of a flow must be looked at next. Whoever has gone meanwhile is not held by its timer.

    ring_ns: when the first timer rings; now and then there is nothing to do then.
    """

    def __init__(self, ends: Ends) -> None:
        """Args: ends: those that the NIC has now."""
        self.ring_ns = NEVER
        self._ends = ends
        self._alarms = new_alarms()
        # bound once: they are called for nearly every packet
        self._set, self._due = self._alarms.set, self._alarms.due

    def arm(self, end: FlowEnd) -> None:
        """Sets a flow's timer, unless it rings early enough: then it is set again when it rings."""
        deadline_ns = end.deadline_ns()
        if deadline_ns < end.timer_ns:
            end.timer_ns = deadline_ns
            self._push(deadline_ns, end.handle)

    def start(self, start_ns: int, peer: int) -> None:
        """Rings when the flow to a peer may start."""
        self._push(start_ns, START | peer)

    def _push(self, time_ns: int, who: int) -> None:
        self._set(time_ns, who)
        if time_ns < self.ring_ns:
            self.ring_ns = time_ns

    def next_due(self, now_ns: int) -> int:
        """Takes off whose time has come next: a handle, or START | peer; NOBODY: there is no more."""
        while (who := self._due(now_ns)) is not None:
            if who & START:
                return who
            end = self._ends.get(who)
            # one that was set for an earlier time since is no more
            if end is not None and end.timer_ns == self._alarms.due_ns:
                end.timer_ns = NEVER
                return who
        first_ns = self._alarms.first_ns
        self.ring_ns = NEVER if first_ns is None else first_ns
        return NOBODY
