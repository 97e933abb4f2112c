# SPDX-License-Identifier: Apache-2.0
"""Parallel paths between NICs, chosen by source port: each delays, marks, trims or has failed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Data, Frame, Parsed
from tests.hosts.marking import marked
from tests.hosts.network import VirtualNetwork, make_nic
from tests.hosts.trimming import trim

FIRST_EV = 500
SPORT = slice(34, 36)


@dataclass
class Paths:
    """What becomes of packets on each path; the answers take the paths of what they answer.

    delays_ns: both ways.
    marks, trims: shares of data packets that arrive marked, or without their payload.
    loss: share of all packets that are lost.
    down: path -> times between which it is down.
    """

    delays_ns: list[int]
    marks: dict[int, float] = field(default_factory=dict)
    trims: dict[int, float] = field(default_factory=dict)
    loss: float = 0.0
    down: dict[int, tuple[int, int]] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def table(self, host: str) -> PathList:
        """Every host's endpoint table, with the weights of eq. 1."""
        longest = max(self.delays_ns)
        return PathList(
            tuple(range(FIRST_EV, FIRST_EV + len(self.delays_ns))),
            tuple(1000 * delay_ns for delay_ns in self.delays_ns),
            tuple(longest / delay_ns for delay_ns in self.delays_ns),
        )

    def of(self, frame: Frame) -> int:
        """The path of a frame; ports that are no EV go somewhere, too."""
        return (int.from_bytes(frame.data[SPORT], "big") - FIRST_EV) % len(self.delays_ns)

    def fate(self, now_ns: int, frame: Frame, parsed: Parsed) -> int | None:
        path = self.of(frame)
        since_ns, until_ns = self.down.get(path, (0, 0))
        if since_ns <= now_ns < until_ns or self._rng.random() < self.loss:
            return None
        return self.delays_ns[path]

    def change(self, frame: Frame, parsed: Parsed) -> Frame:
        path = self.of(frame)
        if not isinstance(parsed, Data):
            return frame
        if self._rng.random() < self.trims.get(path, 0.0):
            return Frame(trim(frame.data))
        if self._rng.random() < self.marks.get(path, 0.0):
            return marked(frame)
        return frame

    def network(self, config: NicConfig, nics: int = 2) -> VirtualNetwork:
        made = [make_nic(number, config, self.seed, self.table) for number in range(1, nics + 1)]
        return VirtualNetwork(made, self.fate, self.change)
