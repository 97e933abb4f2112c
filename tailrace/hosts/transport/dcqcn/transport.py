# SPDX-License-Identifier: Apache-2.0
"""dcqcn: go-back-N at the rate that DCQCN allows (Zhu et al., SIGCOMM 2015), optionally with Hermes.

Without a CNP a flow sends at line rate, from its first packet on; PFC and the window, if there is a window,
limit such a flow like any other flow. See `hosts.transport.dcqcn.rate` for the rate,
`hosts.transport.dcqcn.pacer` for pacing, `hosts.transport.dcqcn.cnp` for the receiver and
`hosts.steering.hermes` for Hermes, which chooses paths.

The transport reports to Hermes
* for each ACK: the mark, and the packet's RTT unless the packet was sent more than once (Karn's rule);
* for a timeout, and for a NAK that causes retransmissions: the path of the first missing packet.
A delayed ACK would increase the measured RTT, so with Hermes NicConfig.ack_every is 1.
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
    """Sends packets as GoBackNSender does, no faster than DCQCN allows.

    rate: the rate that DCQCN allows.
    pacer: determines when the next frame may be sent.
    steering: chooses source ports; None: the flow's original port is used.
    """

    __slots__ = ("_flight", "_now_ns", "_sent_twice", "_slower", "pacer", "rate", "steering")

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's original UDP source port.
        """
        super().__init__(packets, config, sport)
        flow_bps, link_bps = config.flow_rate_bps, config.link_rate_bps
        self._slower: bool = 0 < flow_bps < link_bps  # the flow's own limit, which must always be paced
        self.rate = DcqcnRate(config.dcqcn, flow_bps if self._slower else link_bps)
        self.pacer = Pacer()
        self._pace()
        self.steering: Hermes | None = None
        # with Hermes, of unacknowledged packets: send time in ns << PORT_BITS | source port
        self._flight: dict[int, int] = {}
        self._sent_twice = 0  # packets before this packet may have been sent more than once
        self._now_ns = 0

    # ---- the rate ----

    def on_frame(self, now_ns: int, frame_bytes: int) -> None:
        """Records the length of the frame that was just sent."""
        self.rate.on_sent(frame_bytes)
        self.pacer.on_sent(now_ns, frame_bytes)
        self._pace()
        if self.steering is not None:
            self.steering.on_frame(now_ns, frame_bytes)

    def on_cnp(self, now_ns: int) -> None:
        """Handles a CNP: packets that arrived at the receiver were marked."""
        self.rate.on_cnp(now_ns)
        self._pace()

    def on_rate_time(self, now_ns: int) -> None:
        """Handles the timer of the rate, if it has expired."""
        if now_ns >= self.rate.deadline_ns:
            self.rate.on_time(now_ns)
            self._pace()

    def _pace(self) -> None:
        # at line rate the link itself limits the rate, more precisely than pacing in whole nanoseconds
        rate = self.rate
        self.pacer.set_rate(rate.rate_bps if self._slower or rate.limited else 0)

    # ---- feedback on paths ----

    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index`, which `peek` returned, is sent on the path that Hermes chooses."""
        steering = self.steering
        if steering is not None:
            self.sport = steering.next_ev(now_ns)
            self._flight[index] = now_ns << PORT_BITS | self.sport
        super().on_sent(now_ns, index)

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles a response with its echoed port and mark, and reports them to Hermes."""
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
        """Handles the timeout, if it has expired."""
        self._now_ns = now_ns
        super().on_time(now_ns)

    def _on_nak(self, arrived: int) -> None:
        if arrived < self._next:
            self._report_missing(NACK)
        super()._on_nak(arrived)

    def _on_timeout(self) -> None:
        self._report_missing(TIMEOUT)
        super()._on_timeout()

    def _report_missing(self, feedback: int) -> None:
        """Reports the path of the first missing packet to Hermes; outstanding packets are then resent."""
        self._sent_twice = self.fresh
        if self.steering is not None:
            self.steering.on_feedback(self._now_ns, feedback, self._flight[self.acked] & PORT_MASK)
