# SPDX-License-Identifier: Apache-2.0
"""tcp: a sender that its window leads, in bursts, and answers in batches, as TCP on a host has it (HF²T §3).

It is here to be compared with RDMA, in RDMA's own packets: what makes the gaps between a flow's packets is
how TCP sends, not how its headers look.

* Window: slow start from `initial_packets`, then Reno (`hosts.transport.tcp.window`). No pacing.
* Segmentation offload: new packets leave in bursts of up to `burst_bytes`, back to back at the link's rate,
  and nothing of the NIC's other flows goes between. As in Linux, a burst that the window would cut short
  waits for more answers, unless it is a third of the window, or nothing is in flight, or something is lost.
* Loss: a packet is lost when `duplicates` later ones have arrived; each answer tells which packet caused it,
  as a first SACK block does. Then fast retransmit and recovery by what is in flight (RFC 6675), with limited
  transmit before (RFC 3042). A timeout (`hosts.transport.tcp.rto`) takes everything outstanding for lost.
* ECN, if data is sent with it: an answer that tells of a mark counts as a loss of which nothing is missing,
  once in a window (RFC 3168 §6.1.2).
* The receiver keeps what comes out of order. What comes in order it acknowledges after `ack_every` packets or
  `ack_delay_ns`, whichever is first, as a NIC that gathers interrupts and a stack that merges packets
  do; at once what comes out of order or twice, what fills a gap (RFC 5681 §4.2), and the end.

Assumptions: no handshake; a flow always has something to send, so its window is never unused for want of
data; packets are gathered for each flow by itself, though NICs do so for a whole queue; no tail loss probe,
so a loss at a flow's end waits for the timeout; a retransmission that is lost does, too (RFC 6675).
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
"""A burst goes out when it is the window divided by this: tcp_tso_win_divisor of Linux."""

OPEN: Final = 0  # nothing is known to be lost
RECOVERY: Final = 1  # fast recovery
LOSS: Final = 2  # after a timeout


class TcpSender(Sender):
    """Sends what was lost first, then what is new, in bursts.

    window: the congestion window.
    rto: the timer.
    state: OPEN, RECOVERY or LOSS; the latter two until all is acknowledged that was sent before.
    burst_left: packets of the present burst that have not left.
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
        sport: the flow's own UDP source port.
        """
        super().__init__(packets, config, sport)
        self._burst_packets: int = max(1, config.tcp.burst_bytes // config.mtu_bytes)
        self._board = Scoreboard(config.tcp.duplicates)
        self._at_once = False  # the first packet of a recovery goes whatever is in flight
        self._recover = 0  # the window was halved for what was sent before this packet
        self._timed = NOTHING  # the packet whose round trip is measured, and when it was sent
        self._timed_ns = 0
        self.burst_left = 0
        self.state = OPEN
        self.rto = RtoClock(config.rto_ns, config.rto_backoff)
        self.window = RenoWindow(config.tcp.initial_packets, self._window_packets)

    @property
    def in_flight(self) -> int:
        """Packets that were sent and have neither arrived nor been lost (pipe, RFC 6675 §4)."""
        board = self._board
        return self.fresh - self.acked - len(board.arrived) - len(board.lost)

    def window_open_after(self, index: int) -> bool:  # noqa: ARG002
        """No packet asks for its answer: the receiver decides alone."""
        return True

    def peek(self) -> int:
        """A lost packet or the first fresh one, if the window lets it go."""
        lost = self._board.first_lost()
        if lost != NOTHING:
            return lost if self._at_once or self.in_flight < self.window.packets else NOTHING
        return self.fresh if self.burst_left > 0 or self._burst() > 0 else NOTHING

    def _burst(self) -> int:
        """Packets of the burst that may begin now; 0: none."""
        in_flight, fresh = self.in_flight, self.fresh
        left = self.packets - fresh
        room = min(self.window.packets - in_flight, left, self.acked + self._window_packets - fresh)
        if room <= 0:
            return 0
        worthwhile = min(self._burst_packets, max(1, self.window.packets // DEFER_SHARE), left)
        if room < worthwhile and in_flight > 0 and self.state == OPEN:
            return 0
        return min(room, self._burst_packets)

    def on_sent(self, now_ns: int, index: int) -> None:
        """Packet `index`, which was peeked at, is sent."""
        if index == self.fresh:
            if self.burst_left == 0:
                self.burst_left = self._burst()
            self.burst_left -= 1
            self.fresh = index + 1
            if self._timed == NOTHING:
                self._timed, self._timed_ns = index, now_ns
        else:
            self._board.on_retransmitted(index)
            self._at_once = False
            # Karn: an answer may be that of either transmission, or have waited for it
            self._timed = NOTHING
        if self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self.rto.rto_ns

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:  # noqa: ARG002
        """What the receiver has in order, and the packet that it answers."""
        if nak or not 0 <= expected <= self.fresh:
            return
        if self.acked < expected:
            self._on_progress(now_ns, expected)
        # an answer that was overtaken tells of its packet all the same
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
        """Lowers the window, unless it was for something that was sent no earlier; whether it did."""
        self.burst_left = 0
        if self.acked < self._recover:
            return False
        self.window.on_loss(self.fresh - self.acked)
        return True

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Its receivers take trimmed packets for lost ones, and do not speak of them."""

    def on_time(self, now_ns: int) -> None:
        """Lets the timeout run off, if it is over."""
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
    """Takes packets in any order within its bitmap, and gathers its answers where nothing is missing."""

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
