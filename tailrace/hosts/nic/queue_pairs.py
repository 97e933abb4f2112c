# SPDX-License-Identifier: Apache-2.0
"""The ends of flows that a NIC has now, by handle.

An end is there from its flow's start to the flow's end, and has a place meanwhile, which another one takes
then. What may outlive an end (a timer, an answer that waits for the link, a template in C) knows it by a
handle, which no other end has ever had: the place, and how many ends had it before.
"""

from __future__ import annotations

from collections import deque

from tailrace.codec.calls import PLACE_BITS, PLACE_MASK
from tailrace.hosts.nic.queue_pair import FlowEnd


class Ends:
    """Who is at which place."""

    def __init__(self) -> None:
        """Nobody is there."""
        self._at: list[FlowEnd | None] = []
        self._free: list[int] = []  # handles of ends that have gone, whose places nobody has taken
        # those that have gone but for their last answers, and the number of the last one; the oldest first
        self._leaving: deque[tuple[int, FlowEnd]] = deque()

    def __len__(self) -> int:
        return len(self._at) - len(self._free) - len(self._leaving)

    def new_handle(self) -> int:
        """The handle of the end that is put next."""
        return self._free[-1] + (1 << PLACE_BITS) if self._free else len(self._at)

    def put(self, end: FlowEnd) -> None:
        """An end is there from now on, with the handle that was new."""
        assert end.handle == self.new_handle()
        if self._free:
            self._at[self._free.pop() & PLACE_MASK] = end
        else:
            self._at.append(end)

    def get(self, handle: int) -> FlowEnd | None:
        """The end with this handle, leaving or not; None: it has gone.

        Raises:
            IndexError: there never was one at that place.
        """
        end = self._at[handle & PLACE_MASK]
        return end if end is not None and end.handle == handle else None

    def drop(self, end: FlowEnd) -> None:
        """An end has gone, and nothing of it is left to send."""
        self._at[end.handle & PLACE_MASK] = None
        self._free.append(end.handle)

    def leave(self, end: FlowEnd, answer: int) -> None:
        """An end goes when so many answers of its NIC have been sent."""
        self._leaving.append((answer, end))

    def on_answers_sent(self, answers: int) -> None:
        """So many answers of the NIC have been sent."""
        leaving = self._leaving
        while leaving and leaving[0][0] <= answers:
            self.drop(leaving.popleft()[1])
