# SPDX-License-Identifier: Apache-2.0
"""The event loop: takes events in order, carries frames over wires.

This file, with the nodes, the wires and the queue, is what a loop in C replaces; `network.py` stays.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop

from native.virtual.events import EventQueue
from native.virtual.trace import TraceHash
from native.virtual.wire import Wire, WireEvent

Progress = Callable[[int, int], None]
"""progress(now_ns, events)"""

_SENT_WHILE_DOWN = -1
_Flight = tuple[Wire, int, bytes, int]
"""A frame on its way: the wire, its cuts when the frame was sent, the frame, its virtual bytes."""


class Loop:
    """Events, and the time. `events` counts those that were handled."""

    def __init__(self, idle: Callable[[], bool]) -> None:
        """`idle` says whether no host has anything left to do."""
        self.now_ns = 0
        self.events = 0
        self.queue = EventQueue()
        self.trace = TraceHash()
        self._hash = self.trace.add
        self._idle = idle

    @property
    def at_rest(self) -> bool:
        """Whether no frame is under way and no host has anything left to do."""
        return self.queue.traffic == 0 and self._idle()

    def transmit(self, wire: Wire, now_ns: int, arrival_ns: int, data: bytes, virtual_bytes: int) -> None:
        """The first bit of a frame goes out now, the last one arrives at `arrival_ns`."""
        if wire.taps:
            wire.tell(WireEvent.SENT, now_ns, data, virtual_bytes)
        cuts = wire.cuts if wire.up else _SENT_WHILE_DOWN
        self.queue.push_traffic(arrival_ns, wire.rank, self._arrive, (wire, cuts, data, virtual_bytes))

    def _arrive(self, now_ns: int, flight: _Flight) -> None:
        self.queue.traffic -= 1
        wire, cuts, data, virtual_bytes = flight
        if (cuts != wire.cuts or wire.drops) and wire.loses(now_ns, cuts, data):
            wire.lost += 1
            wire.tell(WireEvent.LOST, now_ns, data, virtual_bytes)
            return
        wire.received += 1
        self._hash(wire.index, now_ns, data, virtual_bytes)
        if wire.taps:
            wire.tell(WireEvent.RECEIVED, now_ns, data, virtual_bytes)
        wire.deliver(now_ns, data, virtual_bytes)

    def run(
        self, until_ns: int | None, *, stop_at_rest: bool, progress: Progress | None, progress_every: int
    ) -> None:
        """Handles events up to and including `until_ns`, or all.

        With `stop_at_rest` it ends when the network is at rest; then the time is that of the last event.
        """
        queue, heap = self.queue, self.queue.heap
        left = progress_every
        while heap:
            if stop_at_rest and not queue.traffic and self._idle():
                return
            event = heap[0]
            now_ns = event[0]
            if until_ns is not None and now_ns > until_ns:
                break
            heappop(heap)
            self.now_ns = now_ns
            event[3](now_ns, event[4])
            self.events += 1
            left -= 1
            if not left:
                left = progress_every
                if progress is not None:
                    progress(now_ns, self.events)
        if until_ns is not None and not (stop_at_rest and self.at_rest):
            self.now_ns = max(self.now_ns, until_ns)
