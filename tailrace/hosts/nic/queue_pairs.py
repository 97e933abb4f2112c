# SPDX-License-Identifier: Apache-2.0
"""The queue pairs of a NIC, by handle: one for each end of a flow, from the flow's start to its end.

A queue pair has a slot (an index), which is reused after its removal. Objects that may outlive a queue pair
(a timer, a response in the queue, a template in C) refer to it by a unique handle: the slot, and in the
upper bits a generation, the number of earlier queue pairs in that slot.
"""

from __future__ import annotations

from collections import deque

from tailrace.codec.calls import SLOT_BITS, SLOT_MASK
from tailrace.hosts.nic.queue_pair import QueuePair


class QueuePairs:
    """Queue pairs by slot."""

    def __init__(self) -> None:
        """There are no queue pairs yet."""
        self._slots: list[QueuePair | None] = []
        self._free: list[int] = []  # the last handle of each free slot
        # queue pairs to be removed, oldest first, with the number of responses that the NIC sends before that
        self._leaving: deque[tuple[int, QueuePair]] = deque()

    def __len__(self) -> int:
        return len(self._slots) - len(self._free) - len(self._leaving)

    def new_handle(self) -> int:
        """The handle of the next queue pair."""
        return self._free[-1] + (1 << SLOT_BITS) if self._free else len(self._slots)

    def put(self, end: QueuePair) -> None:
        """Adds a queue pair; its handle must be the result of the last call of `new_handle`."""
        assert end.handle == self.new_handle()
        if self._free:
            self._slots[self._free.pop() & SLOT_MASK] = end
        else:
            self._slots.append(end)

    def get(self, handle: int) -> QueuePair | None:
        """The queue pair with this handle, even if it is about to be removed; None: it has been removed.

        Raises:
            IndexError: no queue pair ever had this slot.
        """
        end = self._slots[handle & SLOT_MASK]
        return end if end is not None and end.handle == handle else None

    def drop(self, end: QueuePair) -> None:
        """Removes a queue pair that has nothing left to send."""
        self._slots[end.handle & SLOT_MASK] = None
        self._free.append(end.handle)

    def drop_after(self, end: QueuePair, responses: int) -> None:
        """Removes a queue pair once its NIC has sent `responses` responses in total."""
        self._leaving.append((responses, end))

    def on_responses_sent(self, responses: int) -> None:
        """Removes the queue pairs that waited until the NIC had sent this total number of responses."""
        leaving = self._leaving
        while leaving and leaving[0][0] <= responses:
            self.drop(leaving.popleft()[1])
