# SPDX-License-Identifier: Apache-2.0
"""dcqcn: go-back-N at the rate that DCQCN allows (Zhu et al., SIGCOMM 2015), by paths that Hermes chooses.

Without a CNP a flow goes as fast as its link lets it, from its first packet on; PFC and a window, if there is
one, hold it back as any other. See `hosts.transport.dcqcn.rate` for the rate, `hosts.transport.dcqcn.pacer`
for what comes of it, `hosts.transport.dcqcn.cnp` for the receiver's part and `hosts.steering.hermes` for the
paths.

What Hermes is told of a path: of each acknowledgment the mark, and the round-trip time of the packet that it
answers, unless that was sent more than once (Karn's rule); of a NAK that makes the flow go back, and of a
timeout, the path of the first packet that is missing. An acknowledgment that the receiver has delayed would
be taken for a slow path, so with Hermes every packet is acknowledged (NicConfig.ack_every 1).
"""

from __future__ import annotations

from tailrace.codec.calls import PORT_BITS, PORT_MASK
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT
from tailrace.hosts.steering.hermes import Hermes
from tailrace.hosts.transport.dcqcn.pacer import Pacer
from tailrace.hosts.transport.dcqcn.rate import DcqcnRate
from tailrace.hosts.transport.go_back_n import GoBackNSender


class DcqcnSender(GoBackNSender):
    """Sends from a position that NAKs and timeouts set back, no faster than DCQCN allows.

    rate: what it allows.
    pacer: when the next frame may go.
    steering: chooses source ports; None: the flow's own one.
    """

    __slots__ = ("_flight", "_now_ns", "_sent_twice", "_slower", "pacer", "rate", "steering")

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's own UDP source port.
        """
        super().__init__(packets, config, sport)
        own_bps, link_bps = config.flow_rate_bps, config.link_rate_bps
        self._slower: bool = 0 < own_bps < link_bps
        self.rate = DcqcnRate(config.dcqcn, own_bps if self._slower else link_bps)
        self.pacer = Pacer()
        self._pace()
        self.steering: Hermes | None = None
        self._flight: dict[int, int] = {}  # time and source port of packets that are not acknowledged
        self._sent_twice = 0  # so may be every packet before this one
        self._now_ns = 0

    # ---- the rate ----

    def on_frame(self, now_ns: int, frame_bytes: int) -> None:
        """The packet that was sent just now has this length as a frame."""
        self.rate.on_sent(frame_bytes)
        self.pacer.on_sent(now_ns, frame_bytes)
        self._pace()
        if self.steering is not None:
            self.steering.on_frame(now_ns, frame_bytes)

    def on_cnp(self, now_ns: int) -> None:
        """The receiver has met congestion."""
        self.rate.on_cnp(now_ns)
        self._pace()

    def on_rate_time(self, now_ns: int) -> None:
        """Lets the timer of the rate run off, if it is over."""
        if now_ns >= self.rate.deadline_ns:
            self.rate.on_time(now_ns)
            self._pace()

    def _pace(self) -> None:
        # at the link's rate the link itself keeps it, to the picosecond
        rate = self.rate
        self.pacer.set_rate(rate.rate_bps if self._slower or rate.limited else 0)

    # ---- what the paths are like ----

    def on_sent(self, now_ns: int, index: int) -> None:
        """Packet `index`, which was peeked at, is sent, on the flow's present path."""
        steering = self.steering
        if steering is not None:
            self.sport = steering.next_ev(now_ns)
            self._flight[index] = now_ns << PORT_BITS | self.sport
        super().on_sent(now_ns, index)

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """What the receiver says, and what it echoes."""
        steering = self.steering
        if steering is None or not 0 <= expected <= self.fresh:
            super().on_ack(now_ns, nak, expected, arrived, sport, marked)
            return
        self._now_ns = now_ns
        steering.on_feedback(now_ns, ACK_ECN if marked else ACK, sport)
        before = self.acked
        if before < expected:
            sent = self._flight[expected - 1]
            if not nak and expected > self._sent_twice and sent & PORT_MASK == sport:
                steering.on_rtt(now_ns, sport, now_ns - (sent >> PORT_BITS))
            for index in range(before, expected):
                del self._flight[index]
        super().on_ack(now_ns, nak, expected, arrived, sport, marked)

    def on_time(self, now_ns: int) -> None:
        """Lets the timeout run off, if it is over."""
        self._now_ns = now_ns
        super().on_time(now_ns)

    def _on_nak(self, arrived: int) -> None:
        if arrived < self._next:
            self._blame(NACK)
        super()._on_nak(arrived)

    def _on_timeout(self) -> None:
        self._blame(TIMEOUT)
        super()._on_timeout()

    def _blame(self, feedback: int) -> None:
        """All that is not acknowledged goes again, for the first packet of it is missing."""
        self._sent_twice = self.fresh
        if self.steering is not None:
            self.steering.on_feedback(self._now_ns, feedback, self._flight[self.acked] & PORT_MASK)
