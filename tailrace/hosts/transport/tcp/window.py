# SPDX-License-Identifier: Apache-2.0
"""The congestion window of the transport tcp, in packets (RFC 5681).

* Slow start, below ssthresh: the number of packets that an ACK newly acknowledges is added to the window.
* Congestion avoidance: the window grows by one packet for each acknowledged window of packets.
* A loss or a mark, once per window: ssthresh and window become half of the outstanding packets, at least 2.
* A timeout: the window becomes 1 packet; ssthresh becomes half of the outstanding packets, too, if there was
  progress since the previous timeout, or there is no previous timeout.

The window counts acknowledged packets, not ACKs, as in Linux (RFC 3465 without its limit L): receivers
coalesce dozens of packets into one ACK, so a window that counted ACKs would hardly grow.

Reno instead of CUBIC: with RTTs of microseconds CUBIC is always in its Reno-friendly region (RFC 9438 §4.3),
because its cubic curve takes seconds. There Reno and CUBIC differ by constant factors only.
"""

from __future__ import annotations

from typing import Final

_LEAST_THRESHOLD: Final = 2


class RenoWindow:
    """The congestion window of one flow.

    packets: number of packets that may be in flight, 1 or more.
    threshold: ssthresh, at which slow start ends.
    """

    __slots__ = ("_credit", "_most", "packets", "threshold")

    def __init__(self, initial: int, most: int) -> None:
        """Args:
        initial: initial window in packets.
        most: maximum window in packets, given by the receiver's buffer.
        """
        self._most = most
        self._credit = 0  # packets acknowledged since the window grew last, in congestion avoidance
        self.packets = min(initial, most)
        self.threshold = most

    def on_acked(self, count: int) -> None:
        """Increases the window: `count` more packets were acknowledged."""
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
        """Reduces the window: a packet was lost or marked while this number of packets was outstanding."""
        self._lower(outstanding)
        self.packets = self.threshold

    def on_timeout(self, outstanding: int, *, again: bool) -> None:
        """Handles a timeout with `outstanding` packets; again: no progress since the last timeout."""
        if not again:
            self._lower(outstanding)
        self.packets = 1

    def _lower(self, outstanding: int) -> None:
        # packets that limited transmit has sent beyond the window do not count (RFC 5681 §3.2)
        self.threshold = max(min(outstanding, self.packets) // 2, _LEAST_THRESHOLD)
        self._credit = 0
