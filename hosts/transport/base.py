# SPDX-License-Identifier: Apache-2.0
"""What every transport has in common: a window of packets, cumulative acknowledgments, and a timeout.

Packets of a flow are numbered from 0 without wrapping; the NIC turns numbers into PSNs and back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from hosts.config import NicConfig


class Answer(NamedTuple):
    """What a receiver says: it has everything before `expected`.

    arrived: with a NAK, the packet beyond `expected` that has just come; otherwise of no meaning.
    """

    nak: bool
    expected: int
    arrived: int


class Sender(ABC):
    """The sending side of one flow.

    Attributes:
        acked: packets 0..acked-1 have been acknowledged.
        fresh: packets fresh.. have never been sent.
    """

    __slots__ = (
        "_backoff",
        "_config",
        "_packets",
        "_window_packets",
        "acked",
        "deadline_ns",
        "fresh",
        "timeouts",
    )

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        self._config = config
        self._packets = packets
        self._window_packets = config.window_packets
        self._backoff = 0
        self.acked = 0
        self.fresh = 0
        self.timeouts = 0
        self.deadline_ns: int | None = None

    @property
    def done(self) -> bool:
        """Whether everything has been acknowledged."""
        return self.acked == self._packets

    @abstractmethod
    def peek(self) -> int | None:
        """The packet to send next; None: nothing now."""

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

    def on_sent(self, now_ns: int, index: int) -> None:
        """Packet `index`, which was peeked at, has been sent."""
        self._advance(index)
        self.fresh = max(self.fresh, index + 1)
        if self.deadline_ns is None:
            self._restart(now_ns)

    def on_answer(self, now_ns: int, answer: Answer) -> None:
        """What the receiver says; old news and nonsense are ignored."""
        if self.acked < answer.expected <= self.fresh:
            self.acked = answer.expected
            self._backoff = 0
            self._on_progress()
            self.deadline_ns = None
        if answer.nak and self.acked == answer.expected < answer.arrived < self.fresh:
            self._on_nak(answer.arrived)
            self.deadline_ns = None
        if self.deadline_ns is None and self.acked < self.fresh:
            self._restart(now_ns)

    def on_time(self, now_ns: int) -> None:
        """Lets the timeout run off, if it is over."""
        if self.deadline_ns is not None and now_ns >= self.deadline_ns:
            self.timeouts += 1
            self._backoff = min(self._backoff + 1, self._config.rto_backoff)
            self.deadline_ns = None
            self._on_timeout()

    def window_open_after(self, index: int) -> bool:
        """Whether the window lets a packet follow `index`."""
        return index + 1 < min(self._packets, self.acked + self._window_packets)

    def _restart(self, now_ns: int) -> None:
        self.deadline_ns = now_ns + (self._config.rto_ns << self._backoff)


class Receiver(ABC):
    """The receiving side of one flow.

    Attributes:
        expected: packets 0..expected-1 have been delivered.
        received: different packets that were taken.
    """

    __slots__ = ("_config", "_packets", "_unanswered", "deadline_ns", "expected", "received")

    def __init__(self, packets: int, config: NicConfig) -> None:
        """Args: packets: length of the flow, 1 or more."""
        self._config = config
        self._packets = packets
        self._unanswered = 0
        self.expected = 0
        self.received = 0
        self.deadline_ns: int | None = None

    @property
    def done(self) -> bool:
        """Whether everything has been delivered."""
        return self.expected == self._packets

    def on_data(self, now_ns: int, index: int, ackreq: bool) -> Answer | None:
        """A packet has arrived; what to answer at once."""
        if index == self.expected:
            self._deliver()
            return self._coalesce(now_ns, ackreq)
        if index < self.expected:
            return self._ack()
        return self._beyond(index)

    def on_time(self, now_ns: int) -> Answer | None:
        """The acknowledgment that was held back, if it was for long enough."""
        if self.deadline_ns is not None and now_ns >= self.deadline_ns:
            return self._ack()
        return None

    @abstractmethod
    def _deliver(self) -> None:
        """Takes the expected packet."""

    @abstractmethod
    def _beyond(self, index: int) -> Answer | None:
        """A packet beyond the expected one has arrived."""

    def _coalesce(self, now_ns: int, ackreq: bool) -> Answer | None:
        self._unanswered += 1
        if ackreq or self.done or self._unanswered >= self._config.ack_every:
            return self._ack()
        if self.deadline_ns is None:
            self.deadline_ns = now_ns + self._config.ack_delay_ns
        return None

    def _ack(self) -> Answer:
        return self._answer(Answer(False, self.expected, self.expected))

    def _nak(self, arrived: int) -> Answer:
        return self._answer(Answer(True, self.expected, arrived))

    def _answer(self, answer: Answer) -> Answer:
        """An answer tells everything, so nothing is held back any more."""
        self._unanswered = 0
        self.deadline_ns = None
        return answer
