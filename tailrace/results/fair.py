# SPDX-License-Identifier: Apache-2.0
"""Completion times under fluid max-min fairness over all paths, that is, with ideal fair sharing.

Each flow is a fluid that may be split over all paths arbitrarily. At any time, the rate of a flow could
increase only if the rate of a flow that is not faster decreased (Bertsekas and Gallager, Data Networks, 1992,
§6.5.2). Rates are limited by the parts of the network that a flow cannot avoid: the links of its source and
its destination, all links out of or into their leaves together, and all links out of or into their pods or
groups together. In leaf-spines and fat-trees with equal links in each tier there are no other limits. In a
Dragonfly and a Slim Fly single links limit paths, too, so true rates may be lower. The model ignores packets,
ACKs, background flows, faults, and the time that congestion control needs to reach a rate.

The times are a reference, not a bound: serving short flows first results in a smaller mean. Each flow starts
when it started in the run, even if it had waited for other flows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.codec.sizes import wire_bytes
from tailrace.results.rows import FlowRow
from tailrace.results.statistics import mean
from tailrace.topology import Topology

MOST_STEPS = 1 << 17
"""Limit of the steps of the computation. Each start or end of a flow takes as many steps as flows are active
then. If there would be more steps, the times are not computed, since that would take longer than half a
second.
"""

_LEAST_BITS = 1e-3  # smaller remainders are rounding errors

Part = tuple[str, str]
"""A part of the network whose capacity limits flows: its kind, and its name."""


class Fair(msgspec.Struct, frozen=True):
    """Means over the flows that finished, without background flows."""

    fct_mean_ns: float
    slowdown_mean: float


class Fluid(msgspec.Struct, frozen=True):
    """A flow as a fluid: its start in ns, its size in bits, and the parts of the network that it crosses."""

    start_ns: int
    bits: int
    parts: tuple[Part, ...]


def rates(flows: Mapping[int, Sequence[Part]], capacity: Mapping[Part, float]) -> dict[int, float]:
    """The max-min fair rates of flows, in the unit of the capacities (progressive filling)."""
    members: dict[Part, list[int]] = {}
    for number, parts in flows.items():
        for part in parts:
            members.setdefault(part, []).append(number)
    remaining = {part: float(capacity[part]) for part in members}
    count = {part: len(part_members) for part, part_members in members.items()}
    # shares of parts only increase, so a part with an outdated share is popped too early, never too late
    waiting = [(remaining[part] / count[part], part) for part in members]
    heapq.heapify(waiting)
    shares: dict[int, float] = {}
    while waiting:
        share, part = heapq.heappop(waiting)
        if not count[part]:
            continue
        current = remaining[part] / count[part]
        if current > share:
            heapq.heappush(waiting, (current, part))
            continue
        for number in members[part]:
            if number not in shares:
                shares[number] = current
                for other in flows[number]:
                    remaining[other] -= current
                    count[other] -= 1
    return shares


def ends_ns(flows: Sequence[Fluid], capacity_bps: Mapping[Part, int]) -> list[float] | None:
    """The time in ns when the last bit of each flow is served; None if that takes more than MOST_STEPS."""
    bits_per_ns = {part: bps / 1e9 for part, bps in capacity_bps.items()}
    pending = sorted(range(len(flows)), key=lambda number: flows[number].start_ns, reverse=True)
    remaining: dict[int, float] = {}
    ends = [0.0] * len(flows)
    now_ns, steps = 0.0, 0
    while remaining or pending:
        if not remaining:
            now_ns = max(now_ns, float(flows[pending[-1]].start_ns))
        while pending and flows[pending[-1]].start_ns <= now_ns:
            number = pending.pop()
            remaining[number] = float(flows[number].bits)
        steps += len(remaining)
        if steps > MOST_STEPS:
            return None
        speeds = rates({number: flows[number].parts for number in remaining}, bits_per_ns)
        done_ns = {number: now_ns + bits / speeds[number] for number, bits in remaining.items()}
        until_ns = min(done_ns.values())
        if pending:
            until_ns = min(until_ns, float(flows[pending[-1]].start_ns))
        for number, speed in speeds.items():
            remaining[number] -= speed * (until_ns - now_ns)
            if done_ns[number] <= until_ns or remaining[number] < _LEAST_BITS:
                del remaining[number]
                ends[number] = until_ns
        now_ns = until_ns
    return ends


class FairSharing:
    """The times of flows under fair sharing on one topology."""

    def __init__(self, topology: Topology, mtu_bytes: int, *, delays: bool = True) -> None:
        """Args:
        topology: the network at the run's time scale, the factor by which a real-time run is slower.
        mtu_bytes: payload of a full packet.
        delays: whether links out of switches have propagation delays, and switches have latencies.
        """
        self._topology = topology
        self._mtu_bytes = mtu_bytes
        self._delays = delays
        self._delays_from: dict[str, dict[str, int]] = {}
        self._capacity = self._capacities()

    def of(self, rows: Iterable[FlowRow]) -> Fair | UnsetType:
        """The mean times of the finished flows; unset if no flow with an ideal time
        finished, or if there are too many flows.
        """
        done = [row for row in rows if row.fct_ns is not None and row.ideal_fct_ns is not None]
        ideal_ns = [row.ideal_fct_ns for row in done if row.ideal_fct_ns is not None]
        fluids = [
            Fluid(row.start_ns, 8 * wire_bytes(row.bytes, self._mtu_bytes)[0], self._parts(row.src, row.dst))
            for row in done
        ]
        ends = ends_ns(fluids, self._capacity)
        if not done or ends is None:
            return UNSET
        times = [
            end - row.start_ns + self._delay_ns(row.src, row.dst) for row, end in zip(done, ends, strict=True)
        ]
        factors = [time / ideal for ideal, time in zip(ideal_ns, times, strict=True)]
        return Fair(mean(times), mean(factors))

    def _capacities(self) -> dict[Part, int]:
        """The capacity of each part in bit/s; each direction of a full-duplex link has the full rate."""
        capacities: dict[Part, int] = {}
        for host in self._topology.hosts:
            capacities["source", host.name] = capacities["destination", host.name] = host.rate_bps
        for link in self._topology.links:
            for end, other in ((link.a, link.b), (link.b, link.a)):
                groups = self._group_of(end), self._group_of(other)
                for kind, name in (("leaf", end), ("group", groups[0])):
                    if kind == "leaf" or groups[0] != groups[1]:
                        for direction in ("out of", "into"):
                            part = f"{direction} {kind}", name
                            capacities[part] = capacities.get(part, 0) + link.rate_bps
        return capacities

    def _parts(self, src: str, dst: str) -> tuple[Part, ...]:
        """The parts that a flow from one host to another crosses; it leaves no area in which both are."""
        parts: list[Part] = [("source", src), ("destination", dst)]
        leaves = [self._topology.host(host).switch for host in (src, dst)]
        for kind, (near, far) in (("leaf", leaves), ("group", map(self._group_of, leaves))):
            if near != far:
                parts += [(f"out of {kind}", near), (f"into {kind}", far)]
        return tuple(parts)

    def _group_of(self, switch: str) -> str:
        """A switch's pod or group; a switch without a group, such as a core switch, is a group by itself."""
        number = self._topology.switch(switch).group
        return switch if number < 0 else str(number)

    def _delay_ns(self, src: str, dst: str) -> int:
        """The constant delay from one host to another: propagation and switch latency."""
        source, target = self._topology.host(src), self._topology.host(dst)
        if not self._delays:
            return source.delay_ns
        delays = self._delays_from.get(source.switch)
        if delays is None:
            delays = self._delays_from[source.switch] = self._least_delays(source.switch)
        return source.delay_ns + delays[target.switch] + target.delay_ns

    def _least_delays(self, start: str) -> dict[str, int]:
        """The least delay in ns from the ingress of a switch to the egress of every switch (Dijkstra)."""
        latency_ns = self._topology.latency_ns
        delays_ns: dict[str, int] = {}
        waiting = [(latency_ns, start)]
        while waiting:
            time_ns, name = heapq.heappop(waiting)
            if name in delays_ns:
                continue
            delays_ns[name] = time_ns
            for peer in self._topology.ports_of(name).values():
                if peer.kind == "switch" and peer.name not in delays_ns:
                    heapq.heappush(waiting, (time_ns + peer.delay_ns + latency_ns, peer.name))
        return delays_ns
