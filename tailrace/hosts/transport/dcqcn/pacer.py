# SPDX-License-Identifier: Apache-2.0
"""Sends one flow's frames at a rate: when the next one may go.

A frame takes its length over the rate; the next one goes at the first whole nanosecond after that. What is
rounded up is not lost: as long as no frame is late, the n-th one after the first goes at the time of n
frames, rounded up once. A frame that goes late, because the link was taken or there was nothing to send,
begins anew: nothing is saved up for a burst. A new rate counts for the whole frame that was sent last.
"""

from __future__ import annotations

from tailrace.spec.constants import NS_BITS


class Pacer:
    """One flow's.

    ready_ns: the next frame goes no earlier.
    """

    __slots__ = ("_bytes", "_rate_bps", "_since_ns", "_since_part", "ready_ns")

    def __init__(self) -> None:
        """Nothing was sent."""
        self._rate_bps = 0  # 0: there is no limit
        self._bytes = 0  # of the last frame
        self._since_ns = 0  # when it went, and parts of a nanosecond, of which the rate has as many as bits
        self._since_part = 0
        self.ready_ns = 0

    def on_sent(self, now_ns: int, frame_bytes: int) -> None:
        if self._rate_bps and now_ns <= self.ready_ns:
            due = self._since_part + self._bytes * NS_BITS
            self._since_ns += due // self._rate_bps
            self._since_part = due % self._rate_bps
        else:
            self._since_ns = now_ns
            self._since_part = 0
        self._bytes = frame_bytes
        self._compute()

    def set_rate(self, rate_bps: int) -> None:
        """From now on frames go at this rate; 0: at once."""
        if rate_bps != self._rate_bps:
            self._rate_bps = rate_bps
            self._since_part = 0
            self._compute()

    def _compute(self) -> None:
        rate_bps = self._rate_bps
        if rate_bps:
            due = self._since_part + self._bytes * NS_BITS
            self.ready_ns = self._since_ns - (-due // rate_bps)
        else:
            self.ready_ns = 0
