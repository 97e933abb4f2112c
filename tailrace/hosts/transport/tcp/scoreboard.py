# SPDX-License-Identifier: Apache-2.0
"""What a sender of the transport tcp knows of packets beyond the acknowledged ones (RFC 6675).

    sent, unknown --its ACK--> arrived
                  --enough later ones have arrived, or a timeout--> lost --retransmitted--> sent, unknown

A packet is lost as soon as `duplicates` packets beyond it have arrived (IsLost); a retransmitted one is
taken for lost once more at a timeout only.
"""

from __future__ import annotations

from bisect import insort

from tailrace.hosts.transport.base import NOTHING


class Scoreboard:
    """One flow's.

    lost: packets to be retransmitted, ascending.
    arrived: packets beyond the acknowledged ones that the receiver has.
    """

    __slots__ = ("_duplicates", "_highest", "_scanned", "arrived", "lost")

    def __init__(self, duplicates: int) -> None:
        """Args: duplicates: arrivals beyond a packet that make it a lost one."""
        self._duplicates = duplicates
        self._highest: list[int] = []  # the greatest arrivals, ascending, `duplicates` at most
        self._scanned = 0  # whether packets before it were lost has been decided
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
        """A packet beyond the acknowledged ones has arrived; takes those for lost that it shows to be."""
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
