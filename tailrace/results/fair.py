# SPDX-License-Identifier: Apache-2.0
"""Completion times under fluid max-min fairness over all paths: what ideal fair sharing would reach.

Each flow is a fluid that may be split over all paths at will, and at any time no flow could be faster
without one that is not faster becoming slower (Bertsekas and Gallager, Data Networks, 1992, §6.5.2). The
parts of the network that bound rates are those that a flow cannot avoid: the link of its source, that of its
destination, all links out of or into their leaves, and out of or into their pods or groups. In leaf-spines
and fat-trees whose links of a tier are alike these are all bounds that there are; in a Dragonfly and a Slim
Fly single links bound paths, too, so true rates may be lower there. Packets, answers, background, faults, and
what congestion control takes to find its rate are left out.

It is a mark to compare with, and no bound: the mean of short flows first is smaller. Flows start when they
did: where they wait for others, the times are those of this run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.codec.sizes import wire_bytes
from tailrace.results.rows import FlowRow
from tailrace.results.statistics import mean
from tailrace.topology import Topology

MOST_STEPS = 1 << 17
"""The sum, over starts and ends of flows, of those under way then; of more it is not computed, for that would
take longer than half a second.
"""

_LEAST_BITS = 1e-3  # less is what rounding leaves

Part = tuple[str, str]
"""A kind of part, and which."""


class Fair(msgspec.Struct, frozen=True):
    """Of the flows that finished and count."""

    fct_mean_ns: float
    slowdown_mean: float


@dataclass(frozen=True, slots=True)
class Fluid:
    """A flow: when it starts, in ns, how much it is, in bits, and the parts that all of it passes."""

    start_ns: int
    bits: int
    parts: tuple[Part, ...]


def rates(flows: Mapping[int, Sequence[Part]], capacity: Mapping[Part, float]) -> dict[int, float]:
    """The max-min fair rates of flows, in the unit of the capacities (progressive filling)."""
    members: dict[Part, list[int]] = {}
    for number, parts in flows.items():
        for part in parts:
            members.setdefault(part, []).append(number)
    left = {part: float(capacity[part]) for part in members}
    count = {part: len(part_members) for part, part_members in members.items()}
    # a part's share only grows while others are filled, so an old one is looked at too early, never too late
    waiting = [(left[part] / count[part], part) for part in members]
    heapq.heapify(waiting)
    shares: dict[int, float] = {}
    while waiting:
        share, part = heapq.heappop(waiting)
        if not count[part]:
            continue
        now = left[part] / count[part]
        if now > share:
            heapq.heappush(waiting, (now, part))
            continue
        for number in members[part]:
            if number not in shares:
                shares[number] = now
                for other in flows[number]:
                    left[other] -= now
                    count[other] -= 1
    return shares


def ends_ns(flows: Sequence[Fluid], capacity_bps: Mapping[Part, int]) -> list[float] | None:
    """When the last bit of each flow has passed; None where that takes too many steps."""
    per_ns = {part: bps / 1e9 for part, bps in capacity_bps.items()}
    coming = sorted(range(len(flows)), key=lambda number: flows[number].start_ns, reverse=True)
    left: dict[int, float] = {}
    ends = [0.0] * len(flows)
    now_ns, steps = 0.0, 0
    while left or coming:
        if not left:
            now_ns = max(now_ns, float(flows[coming[-1]].start_ns))
        while coming and flows[coming[-1]].start_ns <= now_ns:
            number = coming.pop()
            left[number] = float(flows[number].bits)
        steps += len(left)
        if steps > MOST_STEPS:
            return None
        speeds = rates({number: flows[number].parts for number in left}, per_ns)
        done_ns = {number: now_ns + bits / speeds[number] for number, bits in left.items()}
        until_ns = min(done_ns.values())
        if coming:
            until_ns = min(until_ns, float(flows[coming[-1]].start_ns))
        for number, speed in speeds.items():
            left[number] -= speed * (until_ns - now_ns)
            if done_ns[number] <= until_ns or left[number] < _LEAST_BITS:
                del left[number]
                ends[number] = until_ns
        now_ns = until_ns
    return ends


class FairSharing:
    """The times of flows under fair sharing on one topology."""

    def __init__(self, topology: Topology, mtu_bytes: int, *, delays: bool = True) -> None:
        """Args:
        topology: as it runs, at its time scale.
        mtu_bytes: payload of a full packet.
        delays: False where switches send without propagation delay and have no latency.
        """
        self._topology = topology
        self._mtu_bytes = mtu_bytes
        self._delays = delays
        self._far: dict[str, dict[str, int]] = {}
        self._capacity = self._capacities()
        self._kinds: Sequence[Callable[[str, str], Part | None]] = (
            lambda src, _dst: ("source", src),
            lambda _src, dst: ("destination", dst),
            lambda src, dst: self._across("out of leaf", self._leaf, src, dst, 0),
            lambda src, dst: self._across("into leaf", self._leaf, src, dst, 1),
            lambda src, dst: self._across("out of group", self._group, src, dst, 0),
            lambda src, dst: self._across("into group", self._group, src, dst, 1),
        )

    def of(self, rows: Iterable[FlowRow]) -> Fair | UnsetType:
        """The times of the flows that finished; unset where none did, or of too many."""
        done = [row for row in rows if row.fct_ns is not None]
        fluids = [
            Fluid(
                row.start_ns,
                8 * wire_bytes(row.bytes, self._mtu_bytes)[0],
                tuple(part for kind in self._kinds if (part := kind(row.src, row.dst)) is not None),
            )
            for row in done
        ]
        ends = ends_ns(fluids, self._capacity)
        if not done or ends is None:
            return UNSET
        times = [
            end - row.start_ns + self._far_ns(row.src, row.dst) for row, end in zip(done, ends, strict=True)
        ]
        factors = [time / row.ideal_fct_ns for row, time in zip(done, times, strict=True)]
        return Fair(mean(times), mean(factors))

    def _capacities(self) -> dict[Part, int]:
        """In bit/s; of a full-duplex link each way."""
        capacities: dict[Part, int] = {}
        for host in self._topology.hosts:
            capacities["source", host.name] = capacities["destination", host.name] = host.rate_bps
        for link in self._topology.links:
            for end, other in ((link.a, link.b), (link.b, link.a)):
                groups = self._group_of(end), self._group_of(other)
                for kind, name in (("leaf", end), ("group", groups[0])):
                    if kind == "leaf" or groups[0] != groups[1]:
                        for way in ("out of", "into"):
                            part = f"{way} {kind}", name
                            capacities[part] = capacities.get(part, 0) + link.rate_bps
        return capacities

    def _across(self, kind: str, place: Callable[[str], str], src: str, dst: str, end: int) -> Part | None:
        """The part that leads out of the source's place, or into the destination's; None within one place."""
        ends = place(src), place(dst)
        return None if ends[0] == ends[1] else (kind, ends[end])

    def _leaf(self, host: str) -> str:
        return self._topology.host(host).switch

    def _group(self, host: str) -> str:
        return self._group_of(self._leaf(host))

    def _group_of(self, switch: str) -> str:
        """A switch's pod or group; each of the others is one by itself, for it may be between them."""
        number = self._topology.switch(switch).group
        return switch if number < 0 else str(number)

    def _far_ns(self, src: str, dst: str) -> int:
        """The least time from one host to another that nothing can take away: propagation, and switches."""
        source, target = self._topology.host(src), self._topology.host(dst)
        if not self._delays:
            return source.delay_ns
        far = self._far.get(source.switch)
        if far is None:
            far = self._far[source.switch] = self._least_ns(source.switch)
        return source.delay_ns + far[target.switch] + target.delay_ns

    def _least_ns(self, start: str) -> dict[str, int]:
        """From the entry of a switch to the exit of each other one (Dijkstra)."""
        latency_ns = self._topology.latency_ns
        numbers: dict[str, int] = {}
        waiting = [(latency_ns, start)]
        while waiting:
            time_ns, name = heapq.heappop(waiting)
            if name in numbers:
                continue
            numbers[name] = time_ns
            for peer in self._topology.ports_of(name).values():
                if peer.kind == "switch" and peer.name not in numbers:
                    heapq.heappush(waiting, (time_ns + peer.delay_ns + latency_ns, peer.name))
        return numbers
