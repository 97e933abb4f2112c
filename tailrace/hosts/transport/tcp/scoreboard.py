# SPDX-License-Identifier: Apache-2.0
"""The scoreboard of the transport tcp: the state of packets beyond the acknowledged ones (RFC 6675).

    sent, unknown --its ACK--> arrived
                  --enough later ones have arrived, or a timeout--> lost --retransmitted--> sent, unknown

A packet is lost as soon as `duplicates` packets beyond it have arrived (IsLost); a retransmitted packet is
declared lost again only at a timeout.
"""

from __future__ import annotations

from bisect import insort

from tailrace.hosts.transport.base import NOTHING


class Scoreboard:
    """The scoreboard of one flow.

    lost: packets to be retransmitted, ascending.
    arrived: packets beyond the acknowledged ones that the receiver has.
    """

    __slots__ = ("_duplicates", "_highest", "_scanned", "arrived", "lost")

    def __init__(self, duplicates: int) -> None:
        """Args: duplicates: number of arrivals beyond a packet after which it is lost."""
        self._duplicates = duplicates
        self._highest: list[int] = []  # the `duplicates` greatest arrivals at most, ascending
        self._scanned = 0  # packets before this one were already checked for loss
        self.arrived: set[int] = set()
        self.lost: dict[int, bool] = {}

    def first_lost(self) -> int:
        """The packet to send again; NOTHING: there is none."""
        return next(iter(self.lost)) if self.lost else NOTHING

    def on_acked(self, before: int, expected: int) -> None:
        """All packets from `before` up to `expected` were acknowledged."""
        if self.arrived:
            self.arrived.difference_update(range(before, expected))
        if self.lost:
            for index in range(before, expected):
                if index in self.lost:
                    del self.lost[index]
        if self._scanned < expected:
            self._scanned = expected

    def on_arrived(self, index: int) -> None:
        """A packet beyond the acknowledged ones has arrived; declares packets lost because of that."""
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
        """A lost packet was sent."""
        del self.lost[index]

    def lose(self, acked: int, fresh: int) -> None:
        """All packets from `acked` up to `fresh` that have not arrived are lost."""
        self.lost = {index: True for index in range(acked, fresh) if index not in self.arrived}
        self._scanned = fresh
