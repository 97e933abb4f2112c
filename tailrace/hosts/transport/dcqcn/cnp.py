# SPDX-License-Identifier: Apache-2.0
"""The notification point of DCQCN: when a receiver sends a CNP (Zhu et al., SIGCOMM 2015, §3.1).

For a marked packet the receiver sends a CNP at once if it sent none for its flow within the last N. After
that it sends at most one CNP per N, at the end of N, and only if a marked packet arrived meanwhile.
"""

from __future__ import annotations

from tailrace.codec.calls import NEVER


class CnpClock:
    """The CNP timer of one flow.

    deadline_ns: when the current N ends; NEVER: the next marked packet causes a CNP at once.
    """

    __slots__ = ("_every_ns", "_marked", "deadline_ns")

    def __init__(self, every_ns: int) -> None:
        """Args: every_ns: N."""
        self._every_ns = every_ns
        self._marked = False  # whether a marked packet arrived in the current N
        self.deadline_ns = NEVER

    def on_marked(self, now_ns: int) -> bool:
        """A marked packet has arrived; returns whether to send a CNP now."""
        due = self.on_time(now_ns)
        if due or self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._every_ns
            return True
        self._marked = True
        return False

    def on_time(self, now_ns: int) -> bool:
        """Ends N if it is over; returns whether to send a CNP now."""
        if now_ns < self.deadline_ns:
            return False
        marked, self._marked = self._marked, False
        self.deadline_ns = now_ns + self._every_ns if marked else NEVER
        return marked
