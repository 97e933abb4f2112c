# SPDX-License-Identifier: Apache-2.0
"""dctcp: selective repeat with an ECN-controlled window, for packets on different paths (Spritz §IV-C, §V-A).

* The receiver accepts packets in any order within its bitmap and acknowledges each at once: the ACK contains
  the expected PSN, the packet's PSN, its source port (the entropy value, EV) and its mark. For a trimmed
  packet the receiver sends a NACK.
* With `ack_every` above 1, packets in order share an ACK (Spritz §IV-C, ACK Coalescing). The ACK contains the
  port of the last of these packets and their common mark; it is sent early if a packet with a different mark
  arrives (RFC 8257 §3.2). The window changes once for each packet, at the first ACK that covers the packet.
  The steering, which chooses source ports, receives the port of each ACK.
* Packets beyond the expected packet, duplicates, trimmed packets and the end of the flow are always
  acknowledged at once. An ACK contains only one PSN beyond the expected PSN, so with a shared ACK other
  packets would still count as in flight.
* With `feedback_bytes` the steering learns of an unmarked ACK only every so many bytes, as if receivers sent
  one ACK for them. The simulator of Spritz's authors sends one for 16 KiB, and of marked packets at once
  (uec.cpp, UecSink::processData); its ACKs have bitmaps of packets out of order, ours have not, so here each
  packet keeps its ACK.
* A packet is lost if a NACK reports it, or if its timeout expires: each packet in flight has a timer.
  Arrivals of later packets do not indicate a loss, because packets overtake each other.
* Lost packets are sent before new packets, on another path if the steering chooses another path.
* The steering receives the outcome of each packet: see `hosts.steering.base`.

Assumptions where the description leaves a choice: an ACK that is overtaken by later ACKs is handled like any
other ACK. The timeout doubles, at most `rto_backoff` times, if a packet times out that was sent after the
last doubling, and no packet has been acknowledged since then.
"""

from __future__ import annotations

from tailrace.codec.calls import NEVER, PORT_BITS, PORT_MASK
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.transports import LOSS, SIZE
from tailrace.hosts.steering.base import ACK as UNMARKED
from tailrace.hosts.steering.base import ACK_ECN, NACK, TIMEOUT, Steering
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE, TRIMMED, Receiver, Sender
from tailrace.hosts.transport.ecn_window import EcnWindow
from tailrace.hosts.transport.mp_rdma import MpRdmaReceiver


class DctcpSender(Sender):
    """Sends lost packets first, then new packets, on the paths that the steering chooses.

    steering: chooses source ports; None: the flow's original port is used.
    window: limits the packets in flight.
    """

    __slots__ = (
        "_backed_off_ns",
        "_feedback_bytes",
        "_flight",
        "_lost",
        "_mtu_bytes",
        "_timeout_is_loss",
        "_timeout_narrows",
        "_unheard_bytes",
        "steering",
        "window",
    )

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's original UDP source port.
        """
        super().__init__(packets, config, sport)
        # the receiver's bitmap limits the outstanding packets, `window` the packets in flight
        self._window_packets = config.bitmap_packets
        # packets in flight, oldest first: send time in ns << PORT_BITS | source port
        self._flight: dict[int, int] = {}
        self._lost: dict[int, bool] = {}  # packets to be retransmitted, in this order
        self._backed_off_ns = 0  # when the timeout doubled last; packets sent earlier have half the timeout
        self._timeout_is_loss: bool = config.timeout == LOSS  # whether a timeout reduces the window
        self._timeout_narrows: bool = config.timeout == SIZE  # whether it takes only the packet's size off it
        self._mtu_bytes: int = config.mtu_bytes
        self._feedback_bytes: int = config.dctcp.feedback_bytes
        # bytes acknowledged since the steering has learnt of an ACK; it learns of the first one
        self._unheard_bytes = self._feedback_bytes
        self.steering: Steering | None = None
        self.window = EcnWindow(config)

    @property
    def in_flight(self) -> int:
        """The number of packets in flight."""
        return len(self._flight)

    def peek(self) -> int:
        """A lost packet, or else the first new packet, if the window allows it."""
        if len(self._flight) >= self.window.packets:
            return NOTHING
        if self._lost:
            return next(iter(self._lost))
        fresh = self.fresh
        return fresh if fresh < self.packets and fresh < self.acked + self._window_packets else NOTHING

    def asks_at(self, index: int) -> bool:  # noqa: ARG002
        """Whether packet `index` requests an ACK (see Sender): it fills the window, and ACKs may wait."""
        in_flight = len(self._flight) + 1
        return self.window.packets <= in_flight < self._ack_every

    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index` is sent, on a path that the steering chooses."""
        steering = self.steering
        if steering is not None:
            self.sport = steering.next_ev(now_ns)
        if index == self.fresh:
            self.fresh = index + 1
        else:
            del self._lost[index]
        self._flight[index] = now_ns << PORT_BITS | self.sport
        if self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + (self._rto_ns << self._backoff)

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles an ACK: packet `arrived`, and all packets before `expected`, have arrived."""
        if nak or not (0 <= arrived < self.fresh and 0 <= expected <= self.fresh):
            return
        flight = self._flight
        unacked = len(flight) + len(self._lost)
        rtt_ns = 0
        if arrived in flight:
            rtt_ns = now_ns - (flight[arrived] >> PORT_BITS)
            self.window.learn(rtt_ns)
            del flight[arrived]
        elif self._lost and arrived in self._lost:
            del self._lost[arrived]
        self._on_cumulative(now_ns, expected)
        if self.steering is not None and self._is_heard(marked):
            self.steering.rtt_ns = rtt_ns
            self.steering.on_feedback(now_ns, ACK_ECN if marked else UNMARKED, sport)
        # if each packet has an ACK, each ACK counts, even if an earlier ACK has covered its packet
        newly_acked = unacked - len(flight) - len(self._lost) if self._ack_every > 1 else 1
        for _ in range(newly_acked):
            self.window.on_ack(now_ns, marked, len(flight))

    def _is_heard(self, marked: bool) -> bool:
        """Whether the steering learns of an ACK: of a mark, or after `feedback_bytes`."""
        self._unheard_bytes += self._mtu_bytes
        if not marked and self._unheard_bytes < self._feedback_bytes:
            return False
        self._unheard_bytes = 0
        return True

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Handles a NACK: packet `arrived` is lost, unless it was already retransmitted with another port."""
        if not (0 <= arrived < self.fresh and 0 <= expected <= self.fresh):
            return
        self._on_cumulative(now_ns, expected)
        if self.steering is not None:
            self.steering.on_feedback(now_ns, NACK, sport)
        flight = self._flight
        if arrived in flight and flight[arrived] & PORT_MASK == sport:
            del flight[arrived]
            self._lost[arrived] = True
            self.window.on_loss(now_ns, len(flight))

    def _on_cumulative(self, now_ns: int, expected: int) -> None:
        """Records that all packets before `expected` have arrived."""
        if self.acked < expected:
            flight, lost = self._flight, self._lost
            for index in range(self.acked, expected):
                if index in flight:
                    del flight[index]
                elif lost and index in lost:
                    del lost[index]
            self.acked = expected
        if self._backoff:
            self._backoff = 0
            self.deadline_ns = now_ns  # the timeouts are shorter again

    def on_time(self, now_ns: int) -> None:
        """Classifies packets whose timeout has expired as lost."""
        if now_ns < self.deadline_ns:
            return
        self.deadline_ns = NEVER
        expired: list[int] = []
        for index, sent in self._flight.items():
            due_ns = self._due_ns(sent >> PORT_BITS)
            if due_ns > now_ns:
                self.deadline_ns = due_ns
                break
            expired.append(index)
        for index in expired:
            self._expire(now_ns, index)

    def _due_ns(self, sent_ns: int) -> int:
        backoff = self._backoff
        if backoff and sent_ns < self._backed_off_ns:
            backoff -= 1
        return sent_ns + (self._rto_ns << backoff)

    def _expire(self, now_ns: int, index: int) -> None:
        sent = self._flight[index]
        del self._flight[index]
        self._lost[index] = True
        self.timeouts += 1
        if sent >> PORT_BITS >= self._backed_off_ns:
            self._backoff = min(self._backoff + 1, self._most_backoff)
            self._backed_off_ns = now_ns
        if self.steering is not None:
            self.steering.on_feedback(now_ns, TIMEOUT, sent & PORT_MASK)
        if self._timeout_is_loss:
            self.window.on_loss(now_ns, len(self._flight))
        elif self._timeout_narrows:
            self.window.narrow()


class DctcpReceiver(MpRdmaReceiver):
    """Accepts packets in any order within its bitmap; sends ACKs, and NACKs for trimmed packets."""

    __slots__ = ()

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        super().__init__(packets, config)
        self.uniform_marks = True

    def _coalesce(self, now_ns: int, ackreq: bool) -> int:
        # the ACK of a packet that fills a gap may be delayed: packets beyond it were already acknowledged
        return Receiver._coalesce(self, now_ns, ackreq)

    def on_trimmed(self, index: int) -> int:
        """Returns a NACK, or an ACK if the packet has already arrived."""
        if not 0 <= index < self._packets:
            return SILENCE
        self.arrived = index
        position = index - self.expected - 1  # in the bitmap; below -1: before the expected packet
        has_arrived = position < -1 or (position >= 0 and self._bitmap >> position & 1 == 1)
        return self._respond(ACK if has_arrived else TRIMMED)
