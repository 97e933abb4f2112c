# SPDX-License-Identifier: Apache-2.0
"""tcp: a window-based sender with bursts, and coalesced ACKs, like TCP on a host.

HF²T §3 compares the gaps between a flow's packets with TCP and with RDMA. These gaps depend on how TCP sends,
not on its headers, so this transport uses RDMA packets.

* Window: slow start from `initial_packets`, then Reno (`hosts.transport.tcp.window`). No pacing.
* Segmentation offload: new packets are sent in bursts of up to `burst_bytes`, back to back at the link's
  rate, with no packets of other flows between them. As in Linux, a burst that the window would shorten waits
  for more ACKs, unless it is a third of the window, or nothing is in flight, or a packet is lost.
* Loss: a packet is lost when `duplicates` later packets have arrived; an ACK contains the PSN of the packet
  that caused it (like a first SACK block). Before the loss is detected, limited transmit applies (RFC 3042);
  afterwards, fast retransmit and recovery based on the packets in flight (RFC 6675). At a timeout
  (hosts.transport.tcp.rto) all outstanding packets are lost.
* ECN, if data is sent as ECN-capable: an ACK with an ECN echo reduces the window like a loss, once per window
  (RFC 3168 §6.1.2).
* The receiver stores out-of-order packets. It acknowledges packets in order after `ack_every` packets or
  `ack_delay_ns`, whichever is first, like interrupt coalescing in a NIC and receive offload in a stack. It
  acknowledges at once an out-of-order or duplicate packet, a packet that fills a gap (RFC 5681 §4.2), and the
  last packet.

Assumptions: no handshake; a flow always has data to send, so its window is never limited by the application;
ACKs are coalesced per flow, although NICs coalesce per queue; no tail loss probe, so a loss at the end of a
flow is detected only by the timeout, like a lost retransmission (RFC 6675).
"""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import ACK, NOTHING, Sender
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver
from tailrace.hosts.transport.tcp.rto import RtoClock
from tailrace.hosts.transport.tcp.scoreboard import Scoreboard
from tailrace.hosts.transport.tcp.window import RenoWindow

DEFER_SHARE: Final = 3
"""A burst may be sent if it is at least the window divided by this: tcp_tso_win_divisor of Linux."""

OPEN: Final = 0  # no packet is lost
RECOVERY: Final = 1  # fast recovery
LOSS: Final = 2  # after a timeout


class TcpSender(Sender):
    """Sends lost packets first, then new packets, in bursts.

    window: the congestion window.
    rto: the retransmission timeout.
    state: OPEN, RECOVERY or LOSS; RECOVERY and LOSS last until all packets sent before the loss or
        the timeout are acknowledged.
    burst_left: packets of the current burst that are still to be sent.
    """

    __slots__ = (
        "_at_once",
        "_board",
        "_burst_packets",
        "_recover",
        "_timed",
        "_timed_ns",
        "burst_left",
        "rto",
        "state",
        "window",
    )

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's original UDP source port.
        """
        super().__init__(packets, config, sport)
        self._burst_packets: int = max(1, config.tcp.burst_bytes // config.mtu_bytes)
        self._board = Scoreboard(config.tcp.duplicates)
        self._at_once = False  # whether the next lost packet is sent regardless of the window
        self._recover = 0  # the window has already been halved for packets before this packet
        self._timed = NOTHING  # the packet whose RTT is measured, and when it was sent
        self._timed_ns = 0
        self.burst_left = 0
        self.state = OPEN
        self.rto = RtoClock(config.rto_ns, config.rto_backoff)
        self.window = RenoWindow(config.tcp.initial_packets, self._window_packets)

    @property
    def in_flight(self) -> int:
        """The number of packets that were sent, and neither arrived nor were lost (pipe, RFC 6675 §4)."""
        board = self._board
        return self.fresh - self.acked - len(board.arrived) - len(board.lost)

    def window_open_after(self, index: int) -> bool:  # noqa: ARG002
        """Always True: Sender.asks_at, its only caller here, then requests no ACK. The receiver alone decides
        when to send ACKs.
        """
        return True

    def peek(self) -> int:
        """A lost packet, or else the first new packet, if the window allows it."""
        lost = self._board.first_lost()
        if lost != NOTHING:
            return lost if self._at_once or self.in_flight < self.window.packets else NOTHING
        return self.fresh if self.burst_left > 0 or self._burst_size() > 0 else NOTHING

    def _burst_size(self) -> int:
        """The number of packets of a burst that may begin now; 0: no burst may begin."""
        in_flight, fresh = self.in_flight, self.fresh
        unsent = self.packets - fresh
        allowed = min(self.window.packets - in_flight, unsent, self.acked + self._window_packets - fresh)
        if allowed <= 0:
            return 0
        # the least burst for which it is worth not to wait for more ACKs
        worthwhile = min(self._burst_packets, max(1, self.window.packets // DEFER_SHARE), unsent)
        if allowed < worthwhile and in_flight > 0 and self.state == OPEN:
            return 0
        return min(allowed, self._burst_packets)

    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index`, which `peek` returned, is sent."""
        if index == self.fresh:
            if self.burst_left == 0:
                self.burst_left = self._burst_size()
            self.burst_left -= 1
            self.fresh = index + 1
            if self._timed == NOTHING:
                self._timed, self._timed_ns = index, now_ns
        else:
            self._board.on_retransmitted(index)
            self._at_once = False
            # Karn's rule: an ACK may be for either transmission; and the missing packet has delayed the
            # cumulative ACKs of later packets, so their RTT would be too long, too
            self._timed = NOTHING
        if self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self.rto.rto_ns

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:  # noqa: ARG002
        """Handles an ACK: all packets before `expected`, and packet `arrived`, have arrived."""
        if nak or not 0 <= expected <= self.fresh:
            return
        if self.acked < expected:
            self._on_progress(now_ns, expected)
        # an ACK that was overtaken by later ACKs still reports its packet
        if self.acked < arrived < self.fresh:
            self._board.on_arrived(arrived)
        if self.state == OPEN:
            if self._board.lost:
                self._halve()
                self.state = RECOVERY
                self._at_once = True
                self._recover = self.fresh
            elif marked and self._halve():
                self._recover = self.fresh

    def _on_progress(self, now_ns: int, expected: int) -> None:
        before, self.acked = self.acked, expected
        if self._timed != NOTHING and self._timed < expected:
            self.rto.on_sample(now_ns - self._timed_ns)
            self._timed = NOTHING
        self.rto.on_progress()
        self._board.on_acked(before, expected)
        if self.state != RECOVERY:
            self.window.on_acked(expected - before)
        if self.state != OPEN and expected >= self._recover:
            self.state = OPEN
            self._at_once = False
        self.deadline_ns = now_ns + self.rto.rto_ns if expected < self.fresh else NEVER

    def _halve(self) -> bool:
        """Reduces the window, at most once per window of packets; returns whether it did."""
        self.burst_left = 0
        if self.acked < self._recover:
            return False
        self.window.on_loss(self.fresh - self.acked)
        return True

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Does nothing: receivers treat trimmed packets as lost and send no NACK."""

    def on_time(self, now_ns: int) -> None:
        """Handles the timeout, if it has expired."""
        if now_ns < self.deadline_ns:
            return
        self.timeouts += 1
        self.window.on_timeout(self.fresh - self.acked, again=self.rto.backed_off)
        self.rto.on_timeout()
        self._board.lose(self.acked, self.fresh)
        self.state = LOSS
        self._at_once = False
        self._recover = self.fresh
        self._timed = NOTHING
        self.burst_left = 0
        self.deadline_ns = NEVER


class TcpReceiver(SelectiveRepeatReceiver):
    """Accepts packets in any order within its bitmap, and coalesces ACKs while no packet is missing."""

    __slots__ = ()

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self.reports_arrival = True

    def _coalesce(self, now_ns: int, ackreq: bool) -> int:  # noqa: ARG002
        return super()._coalesce(now_ns, False)

    def _beyond(self) -> int:
        self._keep()
        return self._respond(ACK)
