# SPDX-License-Identifier: Apache-2.0
"""DCQCN's reaction point written out (Zhu et al., SIGCOMM 2015, §3.1), with exact fractions and one event at a time.

It shares nothing with hosts.transport.dcqcn.rate but the assumptions that stand there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

F = 5
G = Fraction(1, 256)
K_NS = T_NS = 55_000
B_BYTES = 10_000_000
AI_SHARE, HAI_SHARE = 1000, 100  # R_AI and R_HAI are the link's rate divided by these
R_MIN = 10_000_000


@dataclass
class Oracle:
    """One flow: timers are looked at by `until`, in the order in which they run off."""

    line: int
    rc: Fraction = field(init=False)
    rt: Fraction = field(init=False)
    alpha: Fraction = Fraction(1)
    t: int = 0
    bc: int = 0
    alpha_timer_ns: int | None = None
    rate_timer_ns: int | None = None
    counted: int = 0

    def __post_init__(self) -> None:
        self.rc = self.rt = Fraction(self.line)

    def until(self, now_ns: int) -> None:
        while True:
            due = [time for time in (self.alpha_timer_ns, self.rate_timer_ns) if time is not None]
            if not due or min(due) > now_ns:
                return
            if self.alpha_timer_ns == min(due):
                assert self.alpha_timer_ns is not None
                self.alpha *= 1 - G
                self.alpha_timer_ns += K_NS
            else:
                assert self.rate_timer_ns is not None
                self.rate_timer_ns += T_NS
                self.increase()
                self.t += 1

    def cnp(self, now_ns: int) -> None:
        self.until(now_ns)
        self.rt = self.rc
        self.rc = max(self.rc * (1 - self.alpha / 2), Fraction(min(R_MIN, self.line)))
        self.alpha = (1 - G) * self.alpha + G
        self.t = self.bc = self.counted = 0
        self.alpha_timer_ns = now_ns + K_NS
        self.rate_timer_ns = now_ns + T_NS if self.rc < self.line else None

    def sent(self, frame_bytes: int) -> None:
        if self.rate_timer_ns is None:
            return
        self.counted += frame_bytes
        if self.counted >= B_BYTES:
            self.counted -= B_BYTES
            self.increase()
            self.bc += 1

    def increase(self) -> None:
        if max(self.t, self.bc) >= F:
            step = self.line // (HAI_SHARE if min(self.t, self.bc) > F else AI_SHARE)
            self.rt = min(self.rt + step, Fraction(self.line))
        self.rc = (self.rt + self.rc) / 2
        # a rate is whole bits per second, and less than one of them is no limit
        if self.line - self.rc < 1:
            self.rc = Fraction(self.line)
            self.rate_timer_ns = None
