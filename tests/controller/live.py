# SPDX-License-Identifier: Apache-2.0
"""A network that only remembers what commands do to it, behind the socket of real ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.controller.control import ControlServer, Messages, Stream
from tailrace.topology import parse_topology

FRAMES = [{"time_ns": 1_500_000_000 + at, "frame": f"{at:02x}" * 60, "length": 1000} for at in range(5)]


class RememberedNetwork(ControlServer):
    """`set`: what was set; `log`: its events; each capture repeats FRAMES, and `closed` counts those that ended."""

    def __init__(self, path: Path, words: str, time_scale: float = 1.0) -> None:
        super().__init__(path, parse_topology(words), time_scale)
        self.set: dict[tuple[str, str], bool | float] = {}
        self.log: list[dict[str, str]] = []
        self.closed = 0

    def status(self) -> str:
        return "running"

    def events(self, start: int) -> Messages:
        return self.log[start:]

    def link(self, a: str, b: str) -> tuple[bool, float]:
        to = self.set.get((a, b), True)
        return (to, 1.0) if isinstance(to, bool) else (True, to)

    def set_link(self, a: str, b: str, to: bool | float, text: str) -> None:
        self.set[a, b] = to
        self.log.append({"time": "0s", "event": "link-set", "subject": f"{a}-{b}", "text": text})

    def capture(self, a: str, b: str) -> Stream:
        try:
            yield [{}]
            for _ in itertools.count():
                yield FRAMES
        finally:
            self.closed += 1


@contextmanager
def live(path: Path, words: str, time_scale: float = 1.0) -> Iterator[RememberedNetwork]:
    """Serves such a network."""
    network = RememberedNetwork(path, words, time_scale)
    network.start_thread()
    try:
        yield network
    finally:
        network.end()
