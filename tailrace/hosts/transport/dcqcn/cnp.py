# SPDX-License-Identifier: Apache-2.0
"""The notification point of DCQCN: when a receiver sends a CNP (Zhu et al., SIGCOMM 2015, §3.1).

A marked packet is answered by a CNP at once if there was none of its flow in the last N. After that there is
one at most in every N, at its end, and only if a marked packet came meanwhile.
"""

from __future__ import annotations

from tailrace.codec.calls import NEVER


class CnpClock:
    """One flow's.

    deadline_ns: when the present N is over; NEVER: the next marked packet makes a CNP.
    """

    __slots__ = ("_every_ns", "_marked", "deadline_ns")

    def __init__(self, every_ns: int) -> None:
        """Args: every_ns: N."""
        self._every_ns = every_ns
        self._marked = False  # so was a packet in the present N
        self.deadline_ns = NEVER

    def on_marked(self, now_ns: int) -> bool:
        """A marked packet has arrived; whether a CNP goes out now."""
        due = self.on_time(now_ns)
        if due or self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._every_ns
            return True
        self._marked = True
        return False

    def on_time(self, now_ns: int) -> bool:
        """N may be over; whether a CNP goes out now."""
        if now_ns < self.deadline_ns:
            return False
        marked, self._marked = self._marked, False
        self.deadline_ns = now_ns + self._every_ns if marked else NEVER
        return marked
