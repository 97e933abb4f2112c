# SPDX-License-Identifier: Apache-2.0
"""Base of all transports: a window of packets, cumulative acknowledgments, and a timeout.

Packets of a flow are numbered from 0 without wrapping; the NIC turns numbers into PSNs and back.
Transports from outside build on classes that allow interpreted subclasses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig

NOTHING: Final = -1  # no packet

# What a receiver answers: nothing now; that it has everything before `expected`; that `expected` is missing;
# that what has arrived was trimmed.
SILENCE: Final = 0
ACK: Final = 1
NAK: Final = 2
TRIMMED: Final = 3


@mypyc_attr(allow_interpreted_subclasses=True)
class Sender(ABC):
    """The sending side of one flow.

    acked: packets 0..acked-1 have been acknowledged.
    fresh: packets fresh.. have never been sent.
    deadline_ns: when `on_time` has something to do.
    sport: UDP source port of the packet that was sent or peeked at last.
    packets: length of the flow.
    timeouts: retransmission timeouts.
    """

    __slots__ = (
        "_ack_every",
        "_backoff",
        "_rto_backoff",
        "_rto_ns",
        "_window_packets",
        "acked",
        "deadline_ns",
        "fresh",
        "packets",
        "sport",
        "timeouts",
    )

    def __init__(self, packets: int, config: NicConfig, sport: int) -> None:
        """Args:
        packets: length of the flow, 1 or more.
        sport: the flow's own UDP source port.
        """
        self._window_packets: int = config.window_packets
        self._ack_every: int = config.ack_every
        self._rto_ns: int = config.rto_ns + config.held_ns  # as RFC 9002 §6.2.1 has it
        self._rto_backoff: int = config.rto_backoff
        self._backoff = 0
        self.packets = packets
        self.acked = 0
        self.fresh = 0
        self.timeouts = 0
        self.deadline_ns = NEVER
        self.sport = sport

    @property
    def done(self) -> bool:
        """Whether everything has been acknowledged."""
        return self.acked == self.packets

    @abstractmethod
    def peek(self) -> int:
        """The packet to send next; NOTHING: none now."""

    @abstractmethod
    def on_sent(self, now_ns: int, index: int) -> None:
        """Packet `index`, which was peeked at, is sent; `sport` is its source port then."""

    @abstractmethod
    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles a response; stale and invalid ones are ignored.

        Args:
            nak: it misses packet `expected`; otherwise it has everything before it.
            arrived: the packet that it answers: with a NAK, or if the receiver reports arrivals; anything
                otherwise.
            sport: source port of the packet that it answers.
            marked: that packet met congestion, or one before it that was not answered.
        """

    @abstractmethod
    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """The receiver has got packet `arrived` without its payload; otherwise as `on_ack`."""

    @abstractmethod
    def on_time(self, now_ns: int) -> None:
        """Lets the timeout run off, if it is over."""

    def window_open_after(self, index: int) -> bool:
        """Whether the window lets a packet follow `index`."""
        next_index = index + 1
        return next_index < self.packets and next_index < self.acked + self._window_packets

    def asks_at(self, index: int) -> bool:
        """Whether packet `index`, which was peeked at, asks for an ACK: the window closes behind it, and the
        receiver may hold back the ACKs of all that is outstanding then.
        """
        outstanding = max(self.fresh, index + 1) - self.acked
        return outstanding < self._ack_every and not self.window_open_after(index)


@mypyc_attr(allow_interpreted_subclasses=True)
class OneTimerSender(Sender):
    """A sender whose one timeout is for whatever is outstanding."""

    __slots__ = ()

    @abstractmethod
    def _advance(self, index: int) -> None:
        """Packet `index`, which was peeked at, has been sent."""

    @abstractmethod
    def _on_progress(self) -> None:
        """`acked` has grown."""

    @abstractmethod
    def _on_nak(self, arrived: int) -> None:
        """The receiver misses packet `acked`; `arrived`, which was sent later, it has seen."""

    @abstractmethod
    def _on_timeout(self) -> None:
        """Nothing was acknowledged for too long, though packets are outstanding."""

    @abstractmethod
    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """What the answer that was just handled echoes of the packet that caused it, as in `on_ack`."""

    def on_sent(self, now_ns: int, index: int) -> None:
        """Packet `index`, which was peeked at, is sent."""
        self._advance(index)
        if index >= self.fresh:
            self.fresh = index + 1
        if self.deadline_ns == NEVER:
            self._restart(now_ns)

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles a response and its echoes."""
        self.on_response(now_ns, nak, expected, arrived)
        self.on_echo(arrived, sport, marked)

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Receivers of these senders take trimmed packets for lost ones, and do not speak of them."""

    def on_response(self, now_ns: int, nak: bool, expected: int, arrived: int) -> None:
        """Handles a response, as in `on_ack`."""
        if self.acked < expected <= self.fresh:
            self.acked = expected
            self._backoff = 0
            self._on_progress()
            self.deadline_ns = NEVER
        if nak and self.acked == expected < arrived < self.fresh:
            self._on_nak(arrived)
            self.deadline_ns = NEVER
        if self.deadline_ns == NEVER and self.acked < self.fresh:
            self._restart(now_ns)

    def on_time(self, now_ns: int) -> None:
        """Lets the timeout run off, if it is over."""
        if now_ns >= self.deadline_ns:
            self.timeouts += 1
            self._backoff = min(self._backoff + 1, self._rto_backoff)
            self.deadline_ns = NEVER
            self._on_timeout()

    def _restart(self, now_ns: int) -> None:
        self.deadline_ns = now_ns + (self._rto_ns << self._backoff)


@mypyc_attr(allow_interpreted_subclasses=True)
class Receiver(ABC):
    """The receiving side of one flow. Its responses are SILENCE, ACK, NAK or TRIMMED.

    expected: packets 0..expected-1 have been delivered.
    arrived: the packet that came last.
    received: different packets that were taken.
    deadline_ns: when `on_time` has something to do.
    tells_arrival: the MSN of an ACK is the PSN of the packet that it answers.
    uniform_marks: all packets that an ACK is for were marked, or none was. A packet with another mark, or a
        trimmed one, releases the delayed ACK.
    """

    __slots__ = (
        "_ack_delay_ns",
        "_ack_every",
        "_packets",
        "_unanswered",
        "arrived",
        "deadline_ns",
        "expected",
        "received",
        "reports_arrival",
        "uniform_marks",
    )

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        self._packets = packets
        self._ack_every: int = config.ack_every
        self._ack_delay_ns: int = config.ack_delay_ns
        self._unanswered = 0
        self.expected = 0
        self.arrived = 0
        self.received = 0
        self.deadline_ns = NEVER
        self.reports_arrival = False
        self.uniform_marks = False

    @property
    def done(self) -> bool:
        """Whether everything has been delivered."""
        return self.expected == self._packets

    def resume(self) -> None:
        """Everything has been delivered: a receiver that is made anew, for a packet that comes again."""
        self.expected = self.received = self._packets

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> int:
        """A packet has arrived; the response to send at once."""
        self.arrived = index
        if index == self.expected:
            self._deliver()
            return self._coalesce(now_ns, ackreq)
        if index < self.expected:
            return self._respond(ACK)
        return self._beyond()

    @abstractmethod
    def on_trimmed(self, index: int) -> int:
        """A packet has arrived without its payload; the response to send at once."""

    def on_time(self, now_ns: int) -> int:
        """The delayed ACK, when its delay is over."""
        return self._respond(ACK) if now_ns >= self.deadline_ns else SILENCE

    @property
    def ack_delayed(self) -> bool:
        """Whether an ACK is delayed."""
        return self.deadline_ns != NEVER

    def release(self) -> int:
        """The delayed ACK, as `on_time` would give it."""
        return self._respond(ACK)

    @abstractmethod
    def _deliver(self) -> None:
        """Takes the expected packet."""

    @abstractmethod
    def _beyond(self) -> int:
        """What arrived is beyond the expected packet."""

    def _coalesce(self, now_ns: int, ackreq: bool) -> int:
        self._unanswered += 1
        if ackreq or self._unanswered >= self._ack_every or self.expected == self._packets:
            return self._respond(ACK)
        if self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._ack_delay_ns
        return SILENCE

    def _respond(self, response: int) -> int:
        """A response covers everything, so no ACK is delayed any more."""
        self._unanswered = 0
        self.deadline_ns = NEVER
        return response
