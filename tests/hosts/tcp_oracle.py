# SPDX-License-Identifier: Apache-2.0
"""A TCP sender told from the RFCs, a packet at a time and with everything counted anew: slow, and plain.

RFC 5681 (window), RFC 6675 (what is lost, what is in flight), RFC 6298 (the timer, in fractions).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

MANY = 10**9


@dataclass
class WindowOracle:
    """RFC 5681, in packets; credit: acknowledged in congestion avoidance since the window has grown."""

    cwnd: int
    most: int
    ssthresh: int = MANY
    credit: int = 0

    def packet_acked(self) -> None:
        if self.cwnd < min(self.ssthresh, self.most):
            self.cwnd += 1
            return
        self.credit += 1
        if self.credit >= self.cwnd:
            self.credit -= self.cwnd
            self.cwnd = min(self.cwnd + 1, self.most)

    def lower(self, flight_size: int) -> None:
        self.ssthresh = max(min(flight_size, self.cwnd) // 2, 2)
        self.credit = 0


@dataclass
class TimerOracle:
    """RFC 6298 in exact fractions; `rto` has no lower limit and is not doubled."""

    srtt: Fraction | None = None
    rttvar: Fraction = Fraction(0)

    def sample(self, rtt_ns: int) -> None:
        if self.srtt is None:
            self.srtt, self.rttvar = Fraction(rtt_ns), Fraction(rtt_ns, 2)
            return
        self.rttvar = Fraction(3, 4) * self.rttvar + Fraction(1, 4) * abs(self.srtt - rtt_ns)
        self.srtt = Fraction(7, 8) * self.srtt + Fraction(1, 8) * rtt_ns

    @property
    def rto(self) -> Fraction:
        assert self.srtt is not None
        return self.srtt + 4 * self.rttvar


@dataclass
class SenderOracle:
    """What may be sent, without bursts: every packet goes as soon as it may.

    lost_since: packets that a timeout has declared lost; resent: of lost packets, those that went again since.
    """

    packets: int
    window: WindowOracle
    receive_window: int
    duplicates: int
    acked: int = 0
    fresh: int = 0
    sacked: set[int] = field(default_factory=set)
    declared: set[int] = field(default_factory=set)
    resent: set[int] = field(default_factory=set)
    recovery_point: int | None = None
    after_timeout: bool = False
    first_of_recovery: bool = False
    reduced_before: int = 0
    silent_timeouts: int = 0

    def is_lost(self, index: int) -> bool:
        """RFC 6675 §4, IsLost."""
        beyond = sum(1 for other in self.sacked if other > index)
        return index not in self.sacked and (index in self.declared or beyond >= self.duplicates)

    def pipe(self) -> int:
        """RFC 6675 §4, SetPipe."""
        packets = 0
        for index in range(self.acked, self.fresh):
            if index not in self.sacked:
                packets += (not self.is_lost(index)) + (index in self.resent)
        return packets

    def next_to_send(self) -> int | None:
        """RFC 6675 §4, NextSeg, its first two rules."""
        open_window = self.pipe() < self.window.cwnd
        for index in range(self.acked, self.fresh):
            if self.is_lost(index) and index not in self.resent:
                return index if open_window or self.first_of_recovery else None
        room = self.fresh < min(self.packets, self.acked + self.receive_window)
        return self.fresh if room and open_window else None

    def send_all(self) -> list[int]:
        sent = []
        while (index := self.next_to_send()) is not None:
            sent.append(index)
            if index == self.fresh:
                self.fresh += 1
            else:
                self.resent.add(index)
                self.first_of_recovery = False
        return sent

    def on_ack(self, expected: int, arrived: int, marked: bool) -> None:
        in_recovery = self.recovery_point is not None and not self.after_timeout
        if expected > self.acked:
            self.silent_timeouts = 0
            for _ in range(self.acked, expected):
                if not in_recovery:
                    self.window.packet_acked()
            self.acked = expected
            if self.recovery_point is not None and expected >= self.recovery_point:
                self.recovery_point, self.after_timeout, self.first_of_recovery = None, False, False
        if arrived > self.acked:
            self.sacked.add(arrived)
        if self.recovery_point is not None:
            return
        lost = any(self.is_lost(i) and i not in self.resent for i in range(self.acked, self.fresh))
        if lost or marked:
            reduces = self.acked >= self.reduced_before
            if reduces:
                self.window.lower(self.fresh - self.acked)
                self.window.cwnd = self.window.ssthresh
                self.reduced_before = self.fresh
            if lost:
                self.recovery_point = self.reduced_before = self.fresh
                self.first_of_recovery = True

    def on_timeout(self) -> None:
        if self.silent_timeouts == 0:
            self.window.lower(self.fresh - self.acked)
        self.silent_timeouts += 1
        self.window.credit, self.window.cwnd = 0, 1
        self.declared = {index for index in range(self.acked, self.fresh) if index not in self.sacked}
        self.resent.clear()
        self.recovery_point = self.reduced_before = self.fresh
        self.after_timeout, self.first_of_recovery = True, False
