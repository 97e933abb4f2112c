# SPDX-License-Identifier: Apache-2.0
"""Selective repeat, for networks that reorder: only missing packets are retransmitted.

The receiver records packets beyond the expected packet in a bitmap of bounded length. For each of them it
sends a NAK with the expected PSN and, in the MSN field of the AETH, the PSN that has just arrived, so that
the sender has the same bitmap. A packet that fills a gap is acknowledged at once, since the sender's window
cannot advance before (RFC 5681 §4.2). A packet is lost when a packet at least `reorder_packets` later has
arrived, or at a timeout.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import NAK, NOTHING, SILENCE, OneTimerSender, Receiver


@mypyc_attr(allow_interpreted_subclasses=True)
class SelectiveRepeatSender(OneTimerSender):
    """Sends lost packets first, then new packets."""

    __slots__ = (
        "_arrived",
        "_lost",
        "_next_lost_position",
        "_pruned",
        "_reorder_packets",
        "_scanned",
        "_top",
    )

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config, sport)
        self._reorder_packets: int = config.reorder_packets
        self._arrived: set[int] = set()  # packets beyond `acked` that have arrived
        self._lost: list[int] = []  # ascending
        self._next_lost_position = 0  # in `_lost`: packets from this position on are still to be sent
        self._pruned = 0  # `_arrived` has no packets before this index
        self._scanned = 0  # packets before this packet were checked for losses
        self._top = 0  # the greatest index that has arrived

    def peek(self) -> int:
        """A lost packet, or else the first new packet, if the window allows it."""
        lost = self._next_lost()
        if lost != NOTHING:
            return lost
        fresh = self.fresh
        return fresh if self.window_open_after(fresh - 1) else NOTHING

    def _next_lost(self) -> int:
        lost = self._lost
        while self._next_lost_position < len(lost):
            index = lost[self._next_lost_position]
            if index >= self.acked and index not in self._arrived:
                return index
            self._next_lost_position += 1
        if lost:
            lost.clear()
            self._next_lost_position = 0
        return NOTHING

    def _advance(self, index: int) -> None:
        if index < self.fresh:
            self._next_lost_position += 1

    def _on_progress(self) -> None:
        if self._arrived:
            self._arrived.difference_update(range(self._pruned, self.acked + 1))
        self._pruned = self.acked
        self._scanned = max(self._scanned, self.acked)

    def _on_nak(self, arrived: int) -> None:
        self._arrived.add(arrived)
        self._top = max(self._top, arrived)
        end = self._top - self._reorder_packets + 1
        for index in range(self._scanned, end):
            if index not in self._arrived:
                self._lost.append(index)
        self._scanned = max(self._scanned, end)

    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """Does nothing: the window does not change."""

    def _on_timeout(self) -> None:
        outstanding = range(self.acked, self.fresh)
        self._lost = [index for index in outstanding if index not in self._arrived]
        self._next_lost_position = 0
        self._scanned = self.fresh


@mypyc_attr(allow_interpreted_subclasses=True)
class SelectiveRepeatReceiver(Receiver):
    """Accepts packets in any order within its bitmap."""

    __slots__ = ("_bitmap", "_bitmap_packets", "_fills")

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self._bitmap_packets: int = config.bitmap_packets
        self._bitmap = 0  # bit i: packet expected + 1 + i has arrived
        self._fills = False  # whether the last packet filled a gap

    def on_trimmed(self, index: int) -> int:  # noqa: ARG002
        """Treats the trimmed packet as lost: no response."""
        return SILENCE

    def _deliver(self) -> None:
        self.received += 1
        self._fills = self._bitmap != 0
        if not self._fills:
            self.expected += 1
            return
        # the expected packet and the packets that follow without a gap: 1 + the bitmap's lowest ones
        delivered = (~self._bitmap & self._bitmap + 1).bit_length()
        self.expected += delivered
        self._bitmap >>= delivered

    def _coalesce(self, now_ns: int, ackreq: bool) -> int:
        return super()._coalesce(now_ns, ackreq or self._fills)

    def _beyond(self) -> int:
        return self._respond(NAK) if self._keep() else SILENCE

    def _keep(self) -> bool:
        """Records a packet beyond the expected packet; returns whether the bitmap has space for it."""
        position = self.arrived - self.expected - 1
        if position >= self._bitmap_packets:
            return False
        if not self._bitmap >> position & 1:
            self._bitmap |= 1 << position
            self.received += 1
        return True
