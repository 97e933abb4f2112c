# SPDX-License-Identifier: Apache-2.0
"""Selective repeat, for networks that reorder: only what is missing is sent again.

The receiver remembers packets beyond the expected one in a bitmap of bounded length. Each of them is
answered by a NAK that names the expected PSN and, in the MSN field of the AETH, the PSN that has just come,
so that the sender keeps the same bitmap. A packet is taken for lost when one `reorder_packets` later has
arrived, or at a timeout.
"""

from __future__ import annotations

from collections import deque

from hosts.config import NicConfig
from hosts.transport.base import Answer, Receiver, Sender


class SelectiveRepeatSender(Sender):
    """Sends what was lost first, then what is new."""

    __slots__ = ("_arrived", "_lost", "_pruned", "_scanned", "_top")

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self._arrived: set[int] = set()  # beyond `acked`
        self._lost: deque[int] = deque()  # ascending
        self._pruned = 0  # `_arrived` holds nothing before it
        self._scanned = 0  # packets before it were looked at for losses
        self._top = 0  # the greatest number that has arrived

    def peek(self) -> int | None:
        """A lost packet, or the first fresh one if the window lets it go."""
        while self._lost:
            index = self._lost[0]
            if index >= self.acked and index not in self._arrived:
                return index
            self._lost.popleft()
        return self.fresh if self.window_open_after(self.fresh - 1) else None

    def _advance(self, index: int) -> None:
        if index < self.fresh:
            self._lost.popleft()

    def _on_progress(self) -> None:
        if self._arrived:
            self._arrived.difference_update(range(self._pruned, self.acked + 1))
        self._pruned = self.acked
        self._scanned = max(self._scanned, self.acked)

    def _on_nak(self, arrived: int) -> None:
        self._arrived.add(arrived)
        self._top = max(self._top, arrived)
        end = self._top - self._config.reorder_packets + 1
        for index in range(self._scanned, end):
            if index not in self._arrived:
                self._lost.append(index)
        self._scanned = max(self._scanned, end)

    def _on_timeout(self) -> None:
        outstanding = range(self.acked, self.fresh)
        self._lost = deque(index for index in outstanding if index not in self._arrived)
        self._scanned = self.fresh


class SelectiveRepeatReceiver(Receiver):
    """Takes packets in any order within its bitmap."""

    __slots__ = ("_bitmap",)

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self._bitmap = 0  # bit i: packet expected + 1 + i is here

    def _deliver(self) -> None:
        self.received += 1
        # the expected packet, and as many as follow it without a gap
        run = (~self._bitmap & self._bitmap + 1).bit_length()
        self.expected += run
        self._bitmap >>= run

    def _beyond(self, index: int) -> Answer | None:
        position = index - self.expected - 1
        if position >= self._config.bitmap_packets:
            return None
        if not self._bitmap >> position & 1:
            self._bitmap |= 1 << position
            self.received += 1
        return self._nak(index)
