# SPDX-License-Identifier: Apache-2.0
"""udp: packets at a constant rate, without acknowledgments, retransmissions or reaction to losses.

A flow ends at its sender with its last packet. At its receiver it ends with the packet that arrives last; the
record of the flow says how many packets were sent and how many arrived. Packets are RoCEv2 frames, as those
of all transports.
"""

from __future__ import annotations

from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import NOTHING, SILENCE, Receiver, Sender


class UdpSender(Sender):
    """Sends each packet once; the NIC paces the packets (NicConfig.flow_rate_bps)."""

    __slots__ = ()

    def peek(self) -> int:
        """The first packet that has not been sent."""
        return self.fresh if self.fresh < self.packets else NOTHING

    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index` is sent. The last packet completes the flow, with the next timer."""
        self.fresh = index + 1
        if self.fresh == self.packets:
            self.deadline_ns = now_ns

    def on_time(self, now_ns: int) -> None:
        """Completes the flow after its last packet."""
        if now_ns >= self.deadline_ns:
            self.acked = self.packets

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Does nothing: there are no ACKs."""

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Does nothing."""


class UdpReceiver(Receiver):
    """Accepts every packet, and sends nothing."""

    __slots__ = ()

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self.unreliable = True

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> int:  # noqa: ARG002
        """Accepts a packet; packets before a later one may be lost."""
        self.arrived = index
        self.received += 1
        self.expected = max(self.expected, index + 1)
        return SILENCE

    def on_trimmed(self, index: int) -> int:  # noqa: ARG002
        """Treats the packet as lost."""
        return SILENCE

    def _deliver(self) -> None:
        """Never called: `on_data` does all."""

    def _beyond(self) -> int:
        return SILENCE


__all__ = ["UdpReceiver", "UdpSender"]
