# SPDX-License-Identifier: Apache-2.0
"""What no scheme can beat: the least mean completion time and slowdown of some flows, whatever switches and
NICs do, on links that are all in order.

The flows of a set all have to pass a part of the network: the link of their source, that of their
destination, all links out of or into their leaf, or out of or into their pod or group. Whatever paths are
taken, and however a flow is split over them, that part passes at most its capacity C, so a schedule of the
network is a schedule of one machine of speed C, on which flow i is a job of p_i = (its bytes on the wire) /
C that is there from the flow's start r_i on. After that part a flow still needs at least d_i, the least
time that light and switches take from its source to its destination. So with C_i, when the machine has done
job i:

    FCT_i >= C_i - r_i + d_i

*Mean FCT.* On one machine that may interrupt jobs, no schedule has a smaller sum of C_i than always to work
on the job of which least is left (SRPT: Schrage, Operations Research 1968). Its sum is the bound.

*Mean slowdown.* It is the sum of w_i FCT_i with w_i = 1 / ideal_i. Let M_i be the mean of the times at
which a machine works on job i; it needs p_i for the job before C_i, so C_i >= M_i + p_i / 2. No schedule
has a smaller sum of w_i M_i than always to work on the job with the largest w_i / p_i: whoever works on
another one may swap a moment of the two, which makes the sum no larger (Goemans, SODA 1997). That is used
for M_i. And each FCT_i is at least p_i + d_i, alone; the larger of the two sums counts.

Sets that hold each flow once can be added up, and flows that pass no such part (within their leaf, or
group) count alone on the link of their source. The bound is the largest of those sums. It leaves out
answers, what is sent again, background, faults, and that a flow needs several of these parts at once: it is
below what can be had, and shows at most how much is left to gain. Fair sharing (fair.py) is none: of two
equal flows on one link it ends both late, and one after the other has the smaller mean.

Flows start when they did: where they wait for others, the floor is that of this run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.codec.sizes import wire_bytes
from tailrace.experiments.results.fair import Fair, Fluid, Part, ends_ns
from tailrace.experiments.results.rows import FlowRow
from tailrace.experiments.results.statistics import mean
from tailrace.topology import Topology
from tailrace.words.constants import NS_BITS

MOST_FLOWS = 1 << 17
"""Of more flows the floor is not reckoned."""


class Floor(msgspec.Struct, frozen=True):
    """Of the flows that finished and count: no less than this, by the part of the network named."""

    fct_mean_ns: float
    slowdown_mean: float
    by: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A flow at a part of the network: when it starts, how long the part has to work for it, how long it is
    under way besides, and its ideal time; in ns.
    """

    start_ns: int
    work_ns: float
    far_ns: int
    ideal_ns: int


class Bounds:
    """The floors of runs on one topology, and their times under fair sharing."""

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
        self._kinds: Mapping[str, Callable[[str, str], tuple[str, str] | None]] = {
            "sources": lambda src, _dst: ("source", src),
            "destinations": lambda _src, dst: ("destination", dst),
            "links out of leaves": lambda src, dst: self._across("out of leaf", self._leaf, src, dst, 0),
            "links into leaves": lambda src, dst: self._across("into leaf", self._leaf, src, dst, 1),
            "links out of groups": lambda src, dst: self._across("out of group", self._group, src, dst, 0),
            "links into groups": lambda src, dst: self._across("into group", self._group, src, dst, 1),
        }

    def floor(self, rows: Iterable[FlowRow]) -> Floor | UnsetType:
        """The floor of the flows that finished; unset where none did, or they are too many."""
        done = [row for row in rows if row.fct_ns is not None]
        if not done or len(done) > MOST_FLOWS:
            return UNSET
        fct, by = max((self._sum(done, kind, least_times), kind) for kind in self._kinds)
        slowdown = max(self._sum(done, kind, least_slowdowns) for kind in self._kinds)
        return Floor(fct / len(done), slowdown / len(done), by)

    def fair(self, rows: Iterable[FlowRow]) -> Fair | UnsetType:
        """The times of the flows that finished, under fair sharing; unset where none did, or of too many."""
        done = [row for row in rows if row.fct_ns is not None]
        fluids = [
            Fluid(
                row.start_ns,
                8 * wire_bytes(row.bytes, self._mtu_bytes)[0],
                tuple(part for kind in self._kinds.values() if (part := kind(row.src, row.dst)) is not None),
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

    def _sum(self, rows: Sequence[FlowRow], kind: str, least: Callable[[Sequence[Piece]], float]) -> float:
        """The least sum, where the flows of a part share it, and the others are alone."""
        parts: dict[Part, list[Piece]] = {}
        total = 0.0
        for row in rows:
            part = self._kinds[kind](row.src, row.dst)
            if part is None:
                total += least([self._piece(row, ("source", row.src))])
            else:
                parts.setdefault(part, []).append(self._piece(row, part))
        return total + sum(map(least, parts.values()))

    def _piece(self, row: FlowRow, part: Part) -> Piece:
        work_ns = wire_bytes(row.bytes, self._mtu_bytes)[0] * NS_BITS / self._capacity[part]
        return Piece(row.start_ns, work_ns, self._far_ns(row.src, row.dst), row.ideal_fct_ns)

    def _capacities(self) -> dict[Part, int]:
        """In bit/s; of a full-duplex link each way."""
        found: dict[Part, int] = {}
        for host in self._topology.hosts:
            found["source", host.name] = found["destination", host.name] = host.rate_bps
        for link in self._topology.links:
            for end, other in ((link.a, link.b), (link.b, link.a)):
                groups = self._group_of(end), self._group_of(other)
                for kind, name in (("leaf", end), ("group", groups[0])):
                    if kind == "leaf" or groups[0] != groups[1]:
                        for way in ("out of", "into"):
                            part = f"{way} {kind}", name
                            found[part] = found.get(part, 0) + link.rate_bps
        return found

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
        found: dict[str, int] = {}
        waiting = [(latency_ns, start)]
        while waiting:
            time_ns, name = heapq.heappop(waiting)
            if name in found:
                continue
            found[name] = time_ns
            for peer in self._topology.ports_of(name).values():
                if peer.kind == "switch" and peer.name not in found:
                    heapq.heappush(waiting, (time_ns + peer.delay_ns + latency_ns, peer.name))
        return found


def least_times(pieces: Sequence[Piece]) -> float:
    """The least sum of completion times of flows that share a part (SRPT)."""
    ends_ns = 0.0
    now_ns = 0.0
    ready: list[float] = []
    coming = sorted(pieces, key=lambda piece: piece.start_ns)
    at = 0
    while ready or at < len(coming):
        if not ready:
            now_ns = max(now_ns, float(coming[at].start_ns))
        while at < len(coming) and coming[at].start_ns <= now_ns:
            heapq.heappush(ready, coming[at].work_ns)
            at += 1
        until_ns = float(coming[at].start_ns) if at < len(coming) else float("inf")
        left_ns = ready[0]
        if now_ns + left_ns <= until_ns:
            heapq.heappop(ready)
            now_ns += left_ns
            ends_ns += now_ns
        else:
            heapq.heapreplace(ready, left_ns - (until_ns - now_ns))
            now_ns = until_ns
    return ends_ns + sum(piece.far_ns - piece.start_ns for piece in pieces)


def least_slowdowns(pieces: Sequence[Piece]) -> float:
    """A sum of slowdowns that flows which share a part cannot be below (mean busy times)."""
    alone = sum((piece.work_ns + piece.far_ns) / piece.ideal_ns for piece in pieces)
    coming = sorted(pieces, key=lambda piece: piece.start_ns)
    left = [piece.work_ns for piece in coming]
    busy = [0.0] * len(coming)
    ready: list[tuple[float, int]] = []
    now_ns, at = 0.0, 0
    while ready or at < len(coming):
        if not ready:
            now_ns = max(now_ns, float(coming[at].start_ns))
        while at < len(coming) and coming[at].start_ns <= now_ns:
            # the largest weight for its work first
            heapq.heappush(ready, (coming[at].ideal_ns * coming[at].work_ns, at))
            at += 1
        until_ns = float(coming[at].start_ns) if at < len(coming) else float("inf")
        _, number = ready[0]
        took_ns = min(left[number], until_ns - now_ns)
        busy[number] += took_ns * (now_ns + took_ns / 2)
        left[number] -= took_ns
        now_ns += took_ns
        if left[number] <= 0:
            heapq.heappop(ready)
    shared = sum(
        (total / piece.work_ns + piece.work_ns / 2 - piece.start_ns + piece.far_ns) / piece.ideal_ns
        for piece, total in zip(coming, busy, strict=True)
    )
    return max(alone, shared)
