# SPDX-License-Identifier: Apache-2.0
"""Spritz-Scout (Spritz §IV-A): looks for good paths, and stays on the shortest while it is good."""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT
from tailrace.hosts.steering.spritz import Spritz


class Scout(Spritz):
    """One flow by Algorithms 1 and 2. Of equally long good paths the one found first is in front.

    It loses more than Spritz-Spray where many flows begin at once: the first acknowledgments send each
    flow's whole window to a minimal path, and most of what is lost is lost in the first 30 µs (1056 hosts,
    random and adversarial pairs). Marks are drawn, so that a path removed for them is back with its next
    unmarked packet, mostly within 1 µs. None of these did clearly better on 72 hosts, where p99 is 1.6
    times that of Spritz-Spray: another place or turns among equally long paths, marks counted for each flow
    or reset, a wait before a path may return, an ECN threshold of 0.
    """

    __slots__ = ("_latencies_ps", "ecn_counts", "ecn_threshold")

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:
        """Args:
        paths: the flow's.
        flow_hash: of its 5-tuple.
        rng: draws among the paths.
        """
        super().__init__(config, paths, flow_hash, rng)
        self._latencies_ps: tuple[int, ...] = paths.latencies_ps
        self.ecn_counts: dict[int, int] = {}  # by index; 0 where there is none
        self.ecn_threshold: int = config.ecn_threshold

    def _take_front(self) -> int:
        return self.buffer_paths[0]

    def _learn(self, now_ns: int, feedback: int, ev: int) -> None:
        buffer_paths = self.buffer_paths
        if feedback == ACK:
            if len(buffer_paths) < self._buffer and ev not in buffer_paths:
                self._insert(ev)
            return
        i = self._find(ev)
        if i < 0:
            return
        if feedback == ACK_ECN:
            count = self.ecn_counts.get(i, 0) + 1
            self.ecn_counts[i] = count
            if count > self.ecn_threshold:
                self.ecn_counts[i] = 0
                self._remove(ev)
        elif feedback == NACK:
            self.ecn_counts[i] = 0
            self._remove(ev)
        elif feedback == TIMEOUT:
            self.ecn_counts[i] = 0
            self._remove(ev)
            self._block(now_ns, i)

    def _insert(self, ev: int) -> None:
        """Into its place by latency."""
        i = self._find(ev)
        if i < 0:
            return
        buffer_paths, latencies_ps = self.buffer_paths, self._latencies_ps
        latency_ps = latencies_ps[i]
        position = len(buffer_paths)
        while position > 0 and latencies_ps[self._find(buffer_paths[position - 1])] > latency_ps:
            position -= 1
        buffer_paths.insert(position, ev)

    def _remove(self, ev: int) -> None:
        if ev in self.buffer_paths:
            self.buffer_paths.remove(ev)
