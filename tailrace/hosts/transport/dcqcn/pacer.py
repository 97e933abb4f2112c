# SPDX-License-Identifier: Apache-2.0
"""Paces one flow's frames at a rate: computes when the next frame may be sent.

A frame's time is its length divided by the rate; the next frame may be sent at the first whole nanosecond
after that time. Rounding errors do not add up: as long as no frame is late, the n-th frame after the first
frame is sent n frame times later, rounded up once. If a frame is late, because the link was busy or there was
nothing to send, pacing starts again with that frame: no credit is saved for a burst. A new rate also applies
to the whole last frame.
"""

from __future__ import annotations

from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns


class Pacer:
    """The pacer of one flow.

    ready_ns: earliest time of the next frame.
    """

    __slots__ = ("_bytes", "_rate_bps", "_since_ns", "_since_part", "ready_ns")

    def __init__(self) -> None:
        """No frame has been sent yet."""
        self._rate_bps = 0  # 0: there is no limit
        self._bytes = 0  # length of the last frame
        self._since_ns = 0  # when the last frame was due: whole ns, and a rest in units of 1/rate_bps ns
        self._since_part = 0
        self.ready_ns = 0

    def on_sent(self, now_ns: int, frame_bytes: int) -> None:
        """Records a frame that is sent, and computes when the next frame may be sent."""
        if self._rate_bps and now_ns <= self.ready_ns:
            due = self._since_part + self._bytes * NS_BITS  # in units of 1/rate_bps ns
            self._since_ns += due // self._rate_bps
            self._since_part = due % self._rate_bps
        else:
            self._since_ns = now_ns
            self._since_part = 0
        self._bytes = frame_bytes
        self._compute()

    def set_rate(self, rate_bps: int) -> None:
        """Sets the rate from now on; 0: no limit."""
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
