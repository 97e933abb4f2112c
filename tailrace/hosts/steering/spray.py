# SPDX-License-Identifier: Apache-2.0
"""Spritz-Spray (Spritz §IV-B): uses a good path for one packet, and again after its unmarked ACK."""

from __future__ import annotations

from tailrace.hosts.steering.base import ACK, TIMEOUT
from tailrace.hosts.steering.spritz import Spritz


class Spray(Spritz):
    """One flow by Algorithms 1 and 3.

    `ev` is a path's entropy value, its UDP source port. `buffer_paths` is the list of good paths. `_find`
    returns the index of the path with an EV; -1: the flow has no such path.
    """

    __slots__ = ()

    def _take_front(self) -> int:
        return self.buffer_paths.pop(0)

    def _learn(self, now_ns: int, feedback: int, ev: int) -> None:
        if feedback == ACK:
            if len(self.buffer_paths) < self._most_good and self._find(ev) >= 0:
                self.buffer_paths.append(ev)
        elif feedback == TIMEOUT:
            i = self._find(ev)
            if i >= 0:
                self._block(now_ns, i)
