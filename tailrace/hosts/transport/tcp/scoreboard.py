# SPDX-License-Identifier: Apache-2.0
"""The scoreboard of the transport tcp: the state of packets beyond the cumulative acknowledgment (RFC 6675).

    in flight --its ACK--> arrived
    in flight --enough later packets have arrived, or a timeout--> lost --retransmitted--> in flight

A packet is lost as soon as `duplicates` packets beyond it have arrived (IsLost); a retransmitted packet is
declared lost again only at a timeout.
"""

from __future__ import annotations

from bisect import insort

from tailrace.hosts.transport.base import NOTHING


class Scoreboard:
    """The scoreboard of one flow.

    lost: packets to be retransmitted, ascending; the values have no meaning.
    arrived: packets that the receiver has beyond the cumulative acknowledgment.
    """

    __slots__ = ("_duplicates", "_highest", "_scanned", "arrived", "lost")

    def __init__(self, duplicates: int) -> None:
        """Args: duplicates: number of arrivals beyond a packet after which it is lost."""
        self._duplicates = duplicates
        self._highest: list[int] = []  # the greatest arrivals, at most `duplicates`, ascending
        self._scanned = 0  # packets before this packet were already checked for loss
        self.arrived: set[int] = set()
        self.lost: dict[int, bool] = {}

    def first_lost(self) -> int:
        """The first packet to retransmit; NOTHING: there is no lost packet."""
        return next(iter(self.lost)) if self.lost else NOTHING

    def on_acked(self, before: int, expected: int) -> None:
        """Records that packets `before`..`expected` - 1 were acknowledged."""
        if self.arrived:
            self.arrived.difference_update(range(before, expected))
        if self.lost:
            for index in range(before, expected):
                if index in self.lost:
                    del self.lost[index]
        if self._scanned < expected:
            self._scanned = expected

    def on_arrived(self, index: int) -> None:
        """Records an arrival beyond the cumulative acknowledgment; may declare earlier packets lost."""
        if index in self.arrived:
            return
        self.arrived.add(index)
        if index in self.lost:
            del self.lost[index]
        highest = self._highest
        insort(highest, index)
        if len(highest) <= self._duplicates:
            if len(highest) < self._duplicates:
                return
        else:
            del highest[0]
        for missing in range(self._scanned, highest[0]):
            if missing not in self.arrived:
                self.lost[missing] = True
        self._scanned = max(self._scanned, highest[0])

    def on_retransmitted(self, index: int) -> None:
        """Records the retransmission of a lost packet."""
        del self.lost[index]

    def lose(self, acked: int, fresh: int) -> None:
        """Declares lost all packets from `acked` to `fresh` - 1 that have not arrived."""
        self.lost = {index: True for index in range(acked, fresh) if index not in self.arrived}
        self._scanned = fresh
