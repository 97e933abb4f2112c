# SPDX-License-Identifier: Apache-2.0
"""Base classes of all transports: a window of packets, cumulative acknowledgments, and a timeout.

Packets of a flow have indices from 0, without wrapping; the NIC converts indices to PSNs and back.
mypyc compiles this module; plug-ins' transports are interpreted, and may subclass only the classes for which
`allow_interpreted_subclasses` is True.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig

NOTHING: Final = -1  # no packet

# Responses of a receiver; TRIMMED is sent as a NACK.
SILENCE: Final = 0  # no response now
ACK: Final = 1  # all packets before `expected` have arrived
NAK: Final = 2  # packet `expected` is missing
TRIMMED: Final = 3  # the packet that arrived was trimmed


@mypyc_attr(allow_interpreted_subclasses=True)
class Sender(ABC):
    """The sending side of one flow.

    acked: packets 0..acked-1 have been acknowledged.
    fresh: the first packet that has never been sent; packets acked..fresh-1 are outstanding.
    deadline_ns: when `on_time` must be called.
    sport: UDP source port of the packet that was last sent or returned by `peek`.
    packets: length of the flow in packets.
    timeouts: number of retransmission timeouts.
    """

    __slots__ = (
        "_ack_every",
        "_backoff",
        "_most_backoff",
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
        sport: the flow's original UDP source port.
        """
        self._window_packets: int = config.window_packets
        self._ack_every: int = config.ack_every
        self._rto_ns: int = config.rto_ns + config.held_ns  # includes the ACK delay, as in RFC 9002 §6.2.1
        self._most_backoff: int = config.rto_backoff
        self._backoff = 0  # number of times that the timeout has doubled, at most `_most_backoff`
        self.packets = packets
        self.acked = 0
        self.fresh = 0
        self.timeouts = 0
        self.deadline_ns = NEVER
        self.sport = sport

    @property
    def done(self) -> bool:
        """Whether every packet has been acknowledged."""
        return self.acked == self.packets

    @abstractmethod
    def peek(self) -> int:
        """The index of the packet to send next; NOTHING: no packet may be sent now."""

    @abstractmethod
    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index`, which `peek` returned, is sent; sets `sport` to its source port."""

    @abstractmethod
    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles a response; stale and invalid responses are ignored.

        Args:
            nak: whether packet `expected` is missing at the receiver.
            expected: all packets before this packet have arrived.
            arrived: the packet that caused the response, if the response is a NAK or the receiver reports
                arrivals; otherwise without meaning.
            sport: source port of the packet that caused the response.
            marked: whether a packet that arrived since the last response had an ECN mark.
        """

    @abstractmethod
    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Handles a NACK (response TRIMMED): packet `arrived` was trimmed; other arguments as in `on_ack`."""

    @abstractmethod
    def on_time(self, now_ns: int) -> None:
        """Handles the timeout, if it has expired."""

    def window_open_after(self, index: int) -> bool:
        """Whether packet `index` + 1 exists and is within the window."""
        next_index = index + 1
        return next_index < self.packets and next_index < self.acked + self._window_packets

    def asks_at(self, index: int) -> bool:
        """Whether packet `index`, which `peek` returned, requests an ACK.

        True if the window closes after this packet, and the receiver might delay the ACKs of all outstanding
        packets.
        """
        outstanding = max(self.fresh, index + 1) - self.acked
        return outstanding < self._ack_every and not self.window_open_after(index)


@mypyc_attr(allow_interpreted_subclasses=True)
class OneTimerSender(Sender):
    """A sender with a single timeout for all outstanding packets."""

    __slots__ = ()

    @abstractmethod
    def _advance(self, index: int) -> None:
        """Records that packet `index`, which `peek` returned, has been sent."""

    @abstractmethod
    def _on_progress(self) -> None:
        """Handles an increase of `acked`."""

    @abstractmethod
    def _on_nak(self, arrived: int) -> None:
        """Handles a NAK: packet `acked` is missing at the receiver; a later packet, `arrived`, is not."""

    @abstractmethod
    def _on_timeout(self) -> None:
        """Handles the timeout: packets are outstanding, but no packet was acknowledged."""

    @abstractmethod
    def on_echo(self, arrived: int, sport: int, marked: bool) -> None:
        """Handles the echoed port and mark of the response just handled; arguments as in `on_ack`."""

    def on_sent(self, now_ns: int, index: int) -> None:
        """Records that packet `index`, which `peek` returned, is sent."""
        self._advance(index)
        if index >= self.fresh:
            self.fresh = index + 1
        if self.deadline_ns == NEVER:
            self._restart(now_ns)

    def on_ack(self, now_ns: int, nak: bool, expected: int, arrived: int, sport: int, marked: bool) -> None:
        """Handles a response, then its echoed port and mark."""
        self.on_response(now_ns, nak, expected, arrived)
        self.on_echo(arrived, sport, marked)

    def on_trimmed(self, now_ns: int, expected: int, arrived: int, sport: int) -> None:
        """Does nothing: receivers of these senders treat trimmed packets as lost and send no NACK."""

    def on_response(self, now_ns: int, nak: bool, expected: int, arrived: int) -> None:
        """Handles a response; arguments as in `on_ack`."""
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
        """Handles the timeout, if it has expired."""
        if now_ns >= self.deadline_ns:
            self.timeouts += 1
            self._backoff = min(self._backoff + 1, self._most_backoff)
            self.deadline_ns = NEVER
            self._on_timeout()

    def _restart(self, now_ns: int) -> None:
        self.deadline_ns = now_ns + (self._rto_ns << self._backoff)


@mypyc_attr(allow_interpreted_subclasses=True)
class Receiver(ABC):
    """The receiving side of one flow. Its responses are SILENCE, ACK, NAK or TRIMMED.

    expected: packets 0..expected-1 have been delivered.
    arrived: the packet that arrived last.
    received: number of packets accepted, without duplicates.
    deadline_ns: when `on_time` must be called.
    reports_arrival: whether the MSN field of an ACK contains the PSN of the packet that caused the ACK.
    uniform_marks: whether the packets of one ACK must all have an ECN mark, or none. If so, the NIC sends a
        delayed ACK early, before it handles a packet with a different mark or a trimmed packet.
    unreliable: lost packets are not sent again, so a flow ends with the packet that arrives last.
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
        "unreliable",
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
        self.unreliable = False

    @property
    def done(self) -> bool:
        """Whether every packet has been delivered."""
        return self.expected == self._packets

    def resume(self) -> None:
        """Restores the state of a complete flow, because one of its packets has arrived again."""
        self.expected = self.received = self._packets

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> int:
        """Handles an arriving packet; returns the response to send at once."""
        self.arrived = index
        if index == self.expected:
            self._deliver()
            return self._coalesce(now_ns, ackreq)
        if index < self.expected:
            return self._respond(ACK)
        return self._beyond()

    @abstractmethod
    def on_trimmed(self, index: int) -> int:
        """Handles an arriving trimmed packet; returns the response to send at once."""

    def on_time(self, now_ns: int) -> int:
        """Returns the delayed ACK, if its delay is over, else SILENCE."""
        return self._respond(ACK) if now_ns >= self.deadline_ns else SILENCE

    @property
    def ack_delayed(self) -> bool:
        """Whether an ACK is delayed."""
        return self.deadline_ns != NEVER

    def release(self) -> int:
        """Returns the delayed ACK before its delay is over."""
        return self._respond(ACK)

    @abstractmethod
    def _deliver(self) -> None:
        """Accepts the expected packet."""

    @abstractmethod
    def _beyond(self) -> int:
        """Handles a packet beyond the expected packet; returns the response to send at once."""

    def _coalesce(self, now_ns: int, ackreq: bool) -> int:
        """Returns the ACK of a packet in order, or SILENCE if the ACK is delayed."""
        self._unanswered += 1
        if ackreq or self._unanswered >= self._ack_every or self.expected == self._packets:
            return self._respond(ACK)
        if self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._ack_delay_ns
        return SILENCE

    def _respond(self, response: int) -> int:
        """Returns a response. Responses are cumulative, so a delayed ACK is no longer needed."""
        self._unanswered = 0
        self.deadline_ns = NEVER
        return response
