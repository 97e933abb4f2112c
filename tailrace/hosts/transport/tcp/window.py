# SPDX-License-Identifier: Apache-2.0
"""The congestion window of the transport tcp, in packets (RFC 5681).

* Slow start, below the threshold: what an acknowledgment covers is added to the window.
* Congestion avoidance: the window grows by one packet for each window that was acknowledged.
* A loss, or a mark, once in a window: threshold and window become half of what is outstanding, 2 at least.
* A timeout: the threshold likewise, unless there was no progress since the last one; the window becomes 1.

An acknowledgment counts for all packets that it covers, as in Linux (RFC 3465 without its limit L):
receivers gather dozens of packets into one answer, and a window that counted answers would hardly open.

Reno rather than CUBIC: with round trips of microseconds CUBIC is in its Reno-friendly region all the time
(RFC 9438 §4.3), because its own curve is a matter of seconds, so that the two differ by factors only.
"""

from __future__ import annotations

from typing import Final

_LEAST_THRESHOLD: Final = 2


class RenoWindow:
    """One flow's.

    packets: that may be in flight, 1 or more.
    threshold: where slow start ends.
    """

    __slots__ = ("_credit", "_most", "packets", "threshold")

    def __init__(self, initial: int, most: int) -> None:
        """Args:
        initial: packets to begin with.
        most: packets that the receiver has room for.
        """
        self._most = most
        self._credit = 0  # packets acknowledged since the window grew last, in congestion avoidance
        self.packets = min(initial, most)
        self.threshold = most

    def on_acked(self, count: int) -> None:
        """So many packets more were acknowledged."""
        packets = self.packets
        if packets < self.threshold:
            added = min(count, self.threshold - packets)
            packets += added
            count -= added
        if count:
            self._credit += count
            while self._credit >= packets:
                self._credit -= packets
                packets = min(packets + 1, self._most)
        self.packets = packets

    def on_loss(self, outstanding: int) -> None:
        """A packet was lost or marked while so many were outstanding."""
        self._lower(outstanding)
        self.packets = self.threshold

    def on_timeout(self, outstanding: int, *, again: bool) -> None:
        """Nothing was heard while so many packets were outstanding; again: nor was since the last timeout."""
        if not again:
            self._lower(outstanding)
        self.packets = 1

    def _lower(self, outstanding: int) -> None:
        # what limited transmit has sent beyond the window does not count (RFC 5681 §3.2)
        self.threshold = max(min(outstanding, self.packets) // 2, _LEAST_THRESHOLD)
        self._credit = 0
