# SPDX-License-Identifier: Apache-2.0
"""A victim pair, and attackers that send one kind of frame at the rate of their links, at one bottleneck.

All of them send to hosts behind the same link, or to the very host of the victim, so the queue in front of it is full.
What the victim gets beside plain data is its due; whatever an attacker's frames are, they may not take more of it
than a tenth (`LEAST_SHARE`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import Host, Topology, parse_topology
from tests.flowcut.fabric import build
from tests.frame_nic import FrameNic
from tests.guards.kinds import Kind, all_plain, plain, roce_data

LEAST_SHARE = 0.9
WARM_UP_BYTES = 240_000
"""Sent by each before the victim's are counted: what a queue and a token bucket give away once is gone by then."""

COUNTED_BYTES = 240_000
COUNTED_FRAMES = 1500
"""Of each sender, at least both."""

LEAST_DUE = 50
REST_NS = 5_000_000
"""Between two kinds: all queues run dry, and every token bucket is full again."""

_MARK = b"victim"


@dataclass(frozen=True)
class OutFrame:
    """A frame to send."""

    data: bytes
    virtual_bytes: int = 0


@dataclass
class Flood(FrameNic):
    """A NIC that sends the same frame over and over almost as fast as its link carries it, until a time.

    Between two it pauses for up to half of a frame's time: of two senders in step, one could find a full
    queue free every time.
    """

    frame: bytes
    from_ns: int
    until_ns: int
    rate_bps: int
    seed: int

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._frame_ns = 8 * len(self.frame) * 1_000_000_000 // self.rate_bps
        self._gap_ns = max(2, self._frame_ns // 2)

    @property
    def idle(self) -> bool:
        """Always: the network's time ends the run."""
        return True

    def next_time_ns(self, now_ns: int) -> int | None:
        """See codec.nic."""
        if now_ns >= self.until_ns:
            return None
        return max(now_ns, self.from_ns)

    def next_frame(self, now_ns: int) -> OutFrame | None:
        """See codec.nic."""
        if not self.from_ns <= now_ns < self.until_ns:
            return None
        self.from_ns = now_ns + self._rng.randrange(self._frame_ns, self._frame_ns + self._gap_ns)
        return OutFrame(self.frame)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """Nothing is answered."""


@dataclass
class Sink(FrameNic):
    """A NIC that counts the victim's packets."""

    counts_from_ns: int = 0
    arrived: int = 0
    idle: bool = True

    def next_time_ns(self, now_ns: int) -> int | None:
        """See codec.nic."""
        return None

    def next_frame(self, now_ns: int) -> OutFrame | None:
        """See codec.nic."""
        return None

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """See codec.nic."""
        if frame.endswith(_MARK) and now_ns >= self.counts_from_ns:
            self.arrived += 1


@dataclass(frozen=True)
class Place:
    """Who sends to whom: the victim's source and destination, and (attacker, destination) pairs."""

    name: str
    topology: str
    victim: tuple[str, str]
    attackers: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.name


@dataclass
class Scene:
    """A network under a scheme, in which kinds are tried one after the other."""

    place: Place
    scheme: str
    topology: Topology = field(init=False)
    network: Network = field(init=False)
    _plain: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.topology = parse_topology(self.place.topology)
        self.network = build(self.topology, parse_scheme(self.scheme))

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.network.close()

    def host(self, name: str) -> Host:
        """A host by its name."""
        return self.topology.host(name)

    def arrived(self, kind: Kind) -> int:
        """The victim's packets that arrive while the attackers send frames of a kind."""
        source, target = (self.host(name) for name in self.place.victim)
        frame_bytes = self._frame_bytes(kind)
        start_ns = self.network.now_ns + 1
        counts_ns = start_ns + 8 * WARM_UP_BYTES * 1_000_000_000 // source.rate_bps
        counted_bytes = max(COUNTED_BYTES, COUNTED_FRAMES * frame_bytes)
        end_ns = counts_ns + 8 * counted_bytes * 1_000_000_000 // source.rate_bps
        data = plain(frame_bytes).make(source, target)
        self.network.attach(
            source.name, Flood(data[: -len(_MARK)] + _MARK, start_ns, end_ns, source.rate_bps, 0)
        )
        for number, (name, to) in enumerate(self.place.attackers, 1):
            host = self.host(name)
            frame = kind.make(host, self.host(to))
            self.network.attach(name, Flood(frame, start_ns, end_ns, host.rate_bps, number))
        sink = Sink(counts_ns)
        self.network.attach(target.name, sink)
        self.network.advance_to(end_ns)
        arrived = sink.arrived
        self.network.advance_to(end_ns + REST_NS)
        return arrived

    def _frame_bytes(self, kind: Kind) -> int:
        """The victim's frames are as long, so that a full queue treats both alike."""
        name, to = self.place.attackers[0]
        return len(kind.make(self.host(name), self.host(to)))

    def due(self, kind: Kind) -> int:
        """The victim's packets that arrive beside as many bytes of plain data, in frames as long, whatever paths
        that takes: the least that was seen.
        """
        frame_bytes = self._frame_bytes(kind)
        return self._plain.get(frame_bytes) or self._measure_due(frame_bytes)

    def _measure_due(self, frame_bytes: int) -> int:
        least = min(map(self.arrived, self._plain_kinds(frame_bytes)))
        self._plain[frame_bytes] = min(least, self._plain.get(frame_bytes, least))
        return self._plain[frame_bytes]

    def _plain_kinds(self, frame_bytes: int) -> Iterator[Kind]:
        """Plain data; RoCE data is some where no queue trims it, which is for a test to bound."""
        yield from all_plain(frame_bytes)
        if "trim=no" in self.scheme:
            yield roce_data(frame_bytes)

    def wins(self, kinds: Sequence[Kind]) -> dict[str, tuple[int, int]]:
        """The kinds by which attackers take more than they may: the victim's packets, and its due.

        What a victim gets depends on paths, too, which are drawn or follow the load: a kind that seems to win has
        to do so again, beside plain data of the same moment.
        """
        gains = {}
        for kind in kinds:
            due, arrived = self.due(kind), self.arrived(kind)
            assert due > LEAST_DUE, "the victim gets its share beside plain data"
            if arrived < LEAST_SHARE * due:
                due, arrived = self._measure_due(self._frame_bytes(kind)), max(arrived, self.arrived(kind))
            if arrived < LEAST_SHARE * due:
                gains[kind.name] = (arrived, due)
        return gains
