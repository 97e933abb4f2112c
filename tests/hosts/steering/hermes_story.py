# SPDX-License-Identifier: Apache-2.0
"""Paths of any kind for Hermes, and a flow over four of them."""

from __future__ import annotations

import random
from typing import Any

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.dcqcn import HermesNicConfig
from tailrace.hosts.steering.base import TIMEOUT
from tailrace.hosts.steering.hermes import Hermes
from tailrace.hosts.steering.hermes_paths import CONGESTED, FAILED, GOOD, GREY, HermesHost, HermesPaths

LINK_BPS = 10_000_000_000
BASE_NS, HOP_NS = 60_000, 80_000
LOW_NS, HIGH_NS = BASE_NS + 30_000, BASE_NS + 120_000
MS = 1_000_000
FIRST = 500


def settings_of(**changes: Any) -> HermesNicConfig:
    return HermesNicConfig(**{"base_rtt_ns": BASE_NS, "hop_ns": HOP_NS, **changes})


def path_list(size: int, place: str = "") -> PathList:
    return PathList(tuple(range(FIRST, FIRST + size)), (0,) * size, (1.0,) * size, place=place)


def known(size: int = 4, **changes: Any) -> HermesPaths:
    return HermesPaths(settings_of(**changes), path_list(size))


def sense(
    paths: HermesPaths, path: int, rtt_ns: int, share: float, now_ns: int = 0, count: int = 400
) -> None:
    """So many packets of a steady round-trip time, of which a share is marked, evenly."""
    for number in range(count):
        paths.on_mark(now_ns, path, int((number + 1) * share) > int(number * share))
        paths.on_rtt(now_ns, path, rtt_ns)


class Story:
    """One flow over four paths."""

    def __init__(self, seed: int = 1, **changes: Any) -> None:
        config = settings_of(**{"stale_ns": 10**12, "size_bytes": 10_000, **changes})
        paths = path_list(4)
        self.paths = HermesPaths(config, paths)
        self.host = HermesHost(config, self.paths, 4)
        self.flow = Hermes(config, paths, self.host, LINK_BPS, random.Random(seed))

    def send(self, now_ns: int = 0, frame_bytes: int = 1000) -> int:
        path = self.flow.next_ev(now_ns) - FIRST
        self.flow.on_frame(now_ns, frame_bytes)
        return path

    def make(self, kinds: dict[int, int], now_ns: int = 0) -> None:
        """Lets paths be of these kinds."""
        for path, kind in kinds.items():
            if kind == GREY:
                sense(self.paths, path, BASE_NS + 40_000, 0.2, now_ns)
            elif kind == CONGESTED:
                sense(self.paths, path, HIGH_NS + 40_000, 0.9, now_ns)
            elif kind == FAILED:
                for _ in range(4):
                    self.host.on_feedback(now_ns, TIMEOUT, path)
            else:
                sense(self.paths, path, BASE_NS, 0.0, now_ns)
        assert kinds == {path: self.host.kind(now_ns, path) for path in kinds}

    def use(self, path: int, count: int, now_ns: int = 0) -> None:
        """Other flows of the NIC send on a path."""
        for _ in range(count):
            self.paths.on_frame(now_ns, path, 1000)


def congested_story(**changes: Any) -> Story:
    """A flow whose path, 0, has become congested, while 1 is good, 2 grey, and 3 congested, too."""
    story = Story(**changes)
    story.make({0: GOOD, 1: GREY, 2: GREY, 3: GREY})
    assert 0 == story.send()
    sense(story.paths, 0, HIGH_NS + 90_000, 0.9)
    sense(story.paths, 1, BASE_NS, 0.0)
    sense(story.paths, 3, HIGH_NS + 90_000, 0.9)
    assert [CONGESTED, GOOD, GREY, CONGESTED] == [story.host.kind(0, path) for path in range(4)]
    return story
