# SPDX-License-Identifier: Apache-2.0
"""The notification point of DCQCN (Zhu et al., SIGCOMM 2015, §3.1): when a receiver sends a CNP, a congestion
notification packet.

N is the minimum time between two CNPs of a flow. For a marked packet the receiver sends a CNP at once if it
has sent no CNP for the flow within the last N. Otherwise the CNP is sent at the end of N.
"""

from __future__ import annotations

from tailrace.codec.calls import NEVER


class CnpClock:
    """The CNP timer of one flow.

    deadline_ns: when the current period of length N ends; NEVER: the next marked packet causes a CNP at once.
    """

    __slots__ = ("_every_ns", "_marked", "deadline_ns")

    def __init__(self, every_ns: int) -> None:
        """Args: every_ns: N."""
        self._every_ns = every_ns
        self._marked = False  # whether a marked packet arrived in the current period
        self.deadline_ns = NEVER

    def on_marked(self, now_ns: int) -> bool:
        """Handles a marked packet; returns whether to send a CNP now."""
        due = self.on_time(now_ns)
        if due or self.deadline_ns == NEVER:
            self.deadline_ns = now_ns + self._every_ns
            return True
        self._marked = True
        return False

    def on_time(self, now_ns: int) -> bool:
        """Ends the current period if it is over; returns whether to send a CNP now."""
        if now_ns < self.deadline_ns:
            return False
        marked, self._marked = self._marked, False
        self.deadline_ns = now_ns + self._every_ns if marked else NEVER
        return marked
