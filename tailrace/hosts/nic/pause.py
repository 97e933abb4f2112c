# SPDX-License-Identifier: Apache-2.0
"""Pauses of a NIC's traffic: of one flow (Flowcut), and of a priority (PFC).

A flow's states (Flowcut §II-B, timeout of §IV-A):

    running --XOFF, XOFF with credit--> paused --XON, or the timeout--> running

A paused flow may still send frames as long as its credit, in bytes, suffices. Each further XOFF sets the
credit and restarts the timeout.
"""

from __future__ import annotations

from typing import Final

from tailrace.codec.calls import NEVER, NO_QUANTA
from tailrace.codec.numbers import PauseOp, pause_ns
from tailrace.spec.constants import PRIORITIES

_XON: Final = int(PauseOp.XON)
_XOFF_CREDIT: Final = int(PauseOp.XOFF_CREDIT)


class FlowPauseState:
    """The pauses of one flow.

    count, paused_ns: number of pauses, and total duration of those that have ended.
    timeouts: number of pauses that ended by their timeout.
    """

    __slots__ = (
        "_credit_bytes",
        "_since_ns",
        "_timeout_ns",
        "count",
        "deadline_ns",
        "paused",
        "paused_ns",
        "timeouts",
    )

    def __init__(self, timeout_ns: int) -> None:
        """Args: timeout_ns: the maximum duration of a pause."""
        self._timeout_ns = timeout_ns
        self._credit_bytes = 0
        self._since_ns = 0
        self.deadline_ns = NEVER  # when the flow resumes without an XON
        self.paused = False
        self.count = 0
        self.paused_ns = 0
        self.timeouts = 0

    def on_pause(self, now_ns: int, op: int, credit_bytes: int) -> None:
        """Handles a pause frame for this flow; op: one of PauseOp."""
        if op == _XON:
            self.resume(now_ns)
            return
        if not self.paused:
            self.paused = True
            self.count += 1
            self._since_ns = now_ns
        self._credit_bytes = credit_bytes if op == _XOFF_CREDIT else 0
        self.deadline_ns = now_ns + self._timeout_ns

    def allows(self, frame_bytes: int) -> bool:
        """Whether a frame of this length may be sent."""
        return not self.paused or frame_bytes <= self._credit_bytes

    def on_sent(self, frame_bytes: int) -> None:
        if self.paused:
            self._credit_bytes -= frame_bytes

    def on_time(self, now_ns: int) -> None:
        """Ends a pause whose XON has not arrived before the timeout."""
        if now_ns >= self.deadline_ns:
            self.timeouts += 1
            self.resume(now_ns)

    def total_ns(self, now_ns: int) -> int:
        """Time paused so far."""
        return self.paused_ns + (now_ns - self._since_ns if self.paused else 0)

    def resume(self, now_ns: int) -> None:
        """Ends a pause, if there is one."""
        if self.paused:
            self.paused = False
            self.deadline_ns = NEVER
            self.paused_ns += now_ns - self._since_ns


class PfcState:
    """PFC of one link: until when each priority is paused."""

    __slots__ = ("_rate_bps", "_until_ns")

    def __init__(self, rate_bps: int) -> None:
        """Args: rate_bps: rate of the link, which determines the length of a quantum."""
        self._rate_bps = rate_bps
        self._until_ns = [0] * PRIORITIES

    def on_pfc(self, now_ns: int, quanta: tuple[int, ...]) -> None:
        """Handles a PFC frame. quanta: by priority; 0 resumes a priority, NO_QUANTA does not change it."""
        for priority in range(len(quanta)):
            if quanta[priority] != NO_QUANTA:
                self._until_ns[priority] = now_ns + pause_ns(quanta[priority], self._rate_bps)

    def until_ns(self, priority: int) -> int:
        """The time from which on this priority may send."""
        return self._until_ns[priority]
