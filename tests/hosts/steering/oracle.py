# SPDX-License-Identifier: Apache-2.0
"""Spritz's Algorithms 1-3 written down a second time, as near to the paper's lines as Python allows, and slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

ACK, ACK_ECN, NACK, TIMEOUT = range(4)


@dataclass
class Oracle:
    """Send and feedback logic with plain lists; i is always the index in `paths`.

    number: the next random number, 0 <= number < 1.
    """

    spray: bool
    paths: list[int]
    latencies: list[int]
    eq1: list[float]
    explore_threshold: int
    ecn_threshold: int
    size: int
    timer: int
    min_bias_factor: float
    gain: float
    limit: float
    number: Callable[[], float]
    packet_count: int = 0
    ecn_rate: float = 0.0
    buffer_paths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.w = list(self.eq1)
        self.ecn_counts = [0 for _ in self.paths]
        self.returns: list[int | None] = [None for _ in self.paths]  # when w[i] is set back

    def global_timer(self, now: int) -> None:
        for i, when in enumerate(self.returns):
            if when is not None and when <= now:
                self.w[i] = self.eq1[i]
                self.returns[i] = None

    def gen(self, w: list[float]) -> int:
        number = self.number()
        if sum(w) == 0:
            w = self.eq1
        below = number * sum(w)
        for i, weight in enumerate(w):
            below -= weight
            if below < 0:
                return i
        raise AssertionError

    def send(self, now: int) -> int:
        self.global_timer(now)
        if self.packet_count > self.explore_threshold:  # Algorithm 1, line 2
            self.packet_count = 0
            i = self.gen(self.w)
            return self.paths[i]
        self.packet_count = self.packet_count + 1  # 7
        if self.buffer_paths == []:  # 8
            i = self.gen(self.w)
            return self.paths[i]
        ev = self.buffer_paths[0]  # 12
        if self.spray:
            self.buffer_paths = self.buffer_paths[1:]  # 14
        return ev  # 16

    def feedback(self, now: int, feedback: int, ev: int) -> None:
        self.global_timer(now)
        if feedback in (ACK, ACK_ECN):
            self.ecn_rate += self.gain * ((1.0 if feedback == ACK_ECN else 0.0) - self.ecn_rate)
        if ev in self.paths:
            i = self.paths.index(ev)
            if self.spray:
                self.algorithm_3(now, feedback, ev, i)
            else:
                self.algorithm_2(now, feedback, ev, i)
        # Algorithm 2, lines 23-25; Algorithm 3, lines 10-12; but a blocked path stays blocked
        if self.ecn_rate > self.limit and self.w[0] != 0:
            self.w[0] = self.min_bias_factor or 2 * self.eq1[0]
            self.returns[0] = now + self.timer

    def algorithm_2(self, now: int, feedback: int, ev: int, i: int) -> None:
        if feedback == ACK and len(self.buffer_paths) < self.size and ev not in self.buffer_paths:  # 2, 3
            self.buffer_paths.append(ev)  # 4
            # sorting is stable: of equal ones the earlier one stays in front
            self.buffer_paths.sort(key=lambda path: self.latencies[self.paths.index(path)])
        if feedback == ACK_ECN:  # 7
            self.ecn_counts[i] = self.ecn_counts[i] + 1
            if self.ecn_counts[i] > self.ecn_threshold:  # 9
                self.ecn_counts[i] = 0
                self.remove(ev)  # 11
        if feedback == NACK:  # 14
            self.ecn_counts[i] = 0
            self.remove(ev)
        if feedback == TIMEOUT:  # 18
            self.ecn_counts[i] = 0
            self.remove(ev)
            self.block(now, i)  # 21

    def algorithm_3(self, now: int, feedback: int, ev: int, i: int) -> None:
        if feedback == ACK and len(self.buffer_paths) < self.size:  # 2, 3
            self.buffer_paths.append(ev)  # 4
        if feedback == TIMEOUT:  # 7
            self.block(now, i)  # 8

    def remove(self, ev: int) -> None:
        self.buffer_paths = [path for path in self.buffer_paths if path != ev]

    def block(self, now: int, i: int) -> None:
        self.w[i] = 0
        self.returns[i] = now + self.timer
