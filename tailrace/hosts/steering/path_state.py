# SPDX-License-Identifier: Apache-2.0
"""What flows of Spritz know of the paths to a host: weights, and good paths (Spritz §III-C, §IV)."""

from __future__ import annotations

from tailrace.codec.calls import NEVER
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.steering.weights import Weights


class PathState:
    """Weights and good paths of the paths to one host; concurrent flows may share them.

    paths: the paths.
    w: their weights.
    buffer_paths: EVs of good paths, the next path first.
    restore_ns: when the first weight is restored, or earlier.
    flows: number of flows that use this state now; counted by the NIC.
    """

    __slots__ = ("_changed", "_timer_ns", "buffer_paths", "flows", "paths", "restore_ns", "w")

    def __init__(self, paths: PathList, timer_ns: int) -> None:
        """Args:
        paths: the paths, with their initial weights (eq. 1).
        timer_ns: time after which a changed weight is restored.
        """
        self._timer_ns = timer_ns
        self._changed: dict[int, int] = {}  # by index of a changed weight: when it is restored; sorted
        self.paths = paths
        self.w = Weights(paths.weights)
        self.buffer_paths: list[int] = []
        self.restore_ns = NEVER
        self.flows = 0

    def block(self, now_ns: int, i: int) -> None:
        """w[i] = 0, until the timer expires."""
        self.w.block(i)
        self._set_timer(now_ns, i)

    def bias_first(self, now_ns: int, weight: float, times: int) -> None:
        """w[0] = weight, until the timer expires; if weight is 0, `times` the initial weight."""
        if weight:
            self.w.put(0, weight)
        else:
            self.w.put_first_times(0, times)
        self._set_timer(now_ns, 0)

    def forget_good(self) -> None:
        """Forgets the good paths; weights remain."""
        self.buffer_paths.clear()

    def _set_timer(self, now_ns: int, i: int) -> None:
        changed = self._changed
        if i in changed:
            del changed[i]  # so that it is re-inserted at the end
        changed[i] = now_ns + self._timer_ns
        if self.restore_ns == NEVER:
            self.restore_ns = now_ns + self._timer_ns

    def restore(self, now_ns: int) -> None:
        """Restores the initial weights whose timer has expired."""
        due: list[int] = []
        self.restore_ns = NEVER
        for i, until_ns in self._changed.items():
            if until_ns > now_ns:
                self.restore_ns = until_ns
                break
            due.append(i)
        for i in due:
            del self._changed[i]
            self.w.restore(i)
