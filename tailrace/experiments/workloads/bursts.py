# SPDX-License-Identifier: Apache-2.0
"""Bursts beside other traffic: periodically several hosts send short flows to one host at once, at line rate;
the flows end before congestion control can slow them down (RLB §II-B: 64 KB each). They cause PFC pauses that
the other traffic alone would not cause (as HPCC, SIGCOMM 2019, §5, adds an incast of 2 % of the capacity).
The flows of bursts themselves are not measured.

Bursts to any host also delay measured flows to that host, which no choice of path avoids. Hot spots are as
in RLB Fig. 2: a receiver, burst senders at the same leaf, and a long flow to it from another leaf, which
spreads the pauses into the fabric; none of these hosts has other traffic. The receivers are the
hosts to which the topology's key `restricted` leaves only some paths, so that only these paths are paused;
without such hosts the receivers are the last host of each leaf.

A burst congests its receiver once, and congestion control soon slows the long flow down. With trains= the
congestion of a hot spot lasts: in every period the far sender and the burst senders each send a train to the
receiver, which is a row of short flows at line rate, one after the other ("uncontrollable bursty traffic",
RLB §II-A). A flow of a train ends before congestion control can act on it. Paths are paused once the far
sender's bytes that wait at the receiver's leaf exceed PFC's threshold at each of the paths' ports.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.interval import LOADED
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import SpecError, keys
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns
from tailrace.topology import Host, Topology

ANYWHERE, LEAF = FROM = ("any", "leaf")
"""Which hosts send bursts: any, or those of the receiver's leaf."""

BURST_BYTES = 64_000
"""Bytes of one flow of a burst (RLB §II-B)."""


TRAINS = keys.number(
    "trains",
    "share of the time for which trains of short flows overload a hot spot's receiver, instead of bursts",
    above=0,
    most=1,
    absent="none",
    section="RLB §II-A",
)


class Spot(NamedTuple):
    """A hot spot: the receiver, the hosts of its leaf that send bursts, and a sender at another leaf."""

    receiver: Host
    servers: tuple[Host, ...]
    far: Host


def trains(spot: Spot, share: float, period_ns: int, size_bytes: int, until_ns: int) -> Iterator[Transfer]:
    """Trains to a hot spot: for a share of each period the far host sends at the receiver's link rate,
    so that queues build up behind its paths, and the hosts at the receiver's leaf together send as much.

    Args:
        spot: the hot spot.
        share: share of the period for which the receiver gets twice what its link carries.
        period_ns: the period.
        size_bytes: size of each flow of a train.
        until_ns: periods that start before this time have trains.

    Raises:
        PatternError: there are too many flows.
    """
    far_bytes = share * period_ns * spot.receiver.rate_bps / NS_BITS
    near_bytes = far_bytes / len(spot.servers)
    periods = -(-until_ns // period_ns)
    check_flows(periods * (2 * far_bytes / size_bytes + len(spot.servers) + 1))
    for period in range(periods):
        for sender, train_bytes in ((spot.far, far_bytes), *((each, near_bytes) for each in spot.servers)):
            for number in range(max(1, round(train_bytes / size_bytes))):
                start_ns = period * period_ns + number * size_bytes * NS_BITS // sender.rate_bps
                yield Transfer(sender, spot.receiver, size_bytes, start_ns, flow_class=BACKGROUND)


class Bursts(msgspec.Struct, frozen=True):
    """A burst every `every_ns` until the end of the workload, the first one after that time.

    degree: hosts that send to the receiver; senders and receiver are drawn for each burst
    flows, size_bytes: the number and size of the flows that each sender sends at once
    near: `leaf`: the senders are at the receiver's leaf, so that bursts do not cross the fabric, and only the
        paths of other flows to this receiver are paused (RLB Fig. 2); `any` (default): any hosts
    spots: number of hot spots; None: receivers and senders are drawn from all hosts for each burst
    long_bytes: size of the long flow to each hot spot's receiver
    trains: with trains instead of bursts, the share of the time for which they congest each receiver;
        every_ns is then the period of trains, and they go on until measured flows have ended
    """

    degree: Annotated[
        int,
        keys.integer(
            "bursts", "number of senders in each burst to a random receiver", least=1, absent="none"
        ),
    ] = 0
    every_ns: Annotated[
        int | None, keys.time("every", "time between bursts", least=1, absent="required with bursts")
    ] = None
    near: Annotated[
        str | None,
        keys.choice(
            "from", "senders of bursts: any hosts, or hosts at the receiver's leaf", FROM, absent=ANYWHERE
        ),
    ] = None
    flows: Annotated[
        int | None, keys.integer("burst", "number of flows of each sender in a burst", least=1, absent="1")
    ] = None
    size_bytes: Annotated[
        int | None,
        keys.size("bytes", "size of each flow of a burst", least=1, absent="64KB", section="RLB §II-B"),
    ] = None
    spots: Annotated[
        int | None,
        keys.integer(
            "spots",
            "number of hot spots: fixed receivers of bursts, each with senders of its own",
            least=1,
            absent="receivers are drawn",
            section="RLB Fig. 2",
        ),
    ] = None
    long_bytes: Annotated[
        int | None,
        keys.size(
            "long",
            "size of a long flow to each hot spot; it starts half a period (every=) before each burst",
            least=1,
            absent="none",
        ),
    ] = None
    trains: Annotated[float | None, TRAINS] = None

    def __post_init__(self) -> None:
        """Refuse bursts= without every=, other keys without bursts=, and keys that exclude each other."""
        if self.degree and self.every_ns is None:
            raise SpecError("key 'every' is missing")
        given = keys.write(self)
        for key in () if self.degree else given:
            raise SpecError(f"{key} may only be given together with bursts")
        for key in ("long", "trains"):
            if self.spots is None and key in given:
                raise SpecError(f"{key} may only be given together with spots")
        for key in ("burst", "long"):
            if self.trains is not None and key in given:
                raise SpecError(f"{key} may not be given together with trains")
        if self.spots is not None and self.near == ANYWHERE:
            raise SpecError("from must be leaf if spots is given, found any")

    def own_hosts(self, topology: Topology) -> frozenset[str]:
        """The names of the hosts of hot spots, which have no other traffic.

        Raises:
            PatternError: there are too few hosts for this number of hot spots.
        """
        spots = self._spots(topology)
        return frozenset(host.name for spot in spots for host in (spot.receiver, spot.far, *spot.servers))

    def _spots(self, topology: Topology) -> list[Spot]:
        if self.spots is None:
            return []
        leaves = topology.leaves
        restricted = [topology.host(restriction.host) for restriction in topology.restricted]
        if len(leaves) < 2:
            raise PatternError("spots: expected a topology with at least two switches that have hosts")
        if self.spots > (len(restricted) or len(leaves)):
            limit = (
                f"{len(restricted)} restricted hosts" if restricted else f"{len(leaves)} switches with hosts"
            )
            raise PatternError(f"spots must be no more than the {limit}")
        receivers = (restricted or [topology.hosts_of(leaf)[-1] for leaf in leaves])[: self.spots]
        free = {leaf: [host for host in topology.hosts_of(leaf) if host not in receivers] for leaf in leaves}
        spots = []
        for receiver in receivers:
            next_leaf = leaves[(leaves.index(receiver.switch) + 1) % len(leaves)]
            # taken from the end of the leaf's hosts
            servers = [
                free[receiver.switch].pop() for _ in range(min(self.degree, len(free[receiver.switch])))
            ]
            if len(servers) < self.degree or not free[next_leaf]:
                names = f"{receiver.switch} and {next_leaf}"
                raise PatternError(f"bursts: {names} have too few hosts for a hot spot")
            spots.append(Spot(receiver, tuple(servers), free[next_leaf].pop()))
        return spots

    def beside(
        self, transfers: Iterable[Transfer], duration_ns: int, topology: Topology, rng: random.Random
    ) -> Iterator[Transfer]:
        """A pattern's transfers, then the flows of the bursts. If there are bursts, the pattern's transfers
        get the class MONITORED, since only they are measured.
        """
        if not self.every_ns:
            yield from transfers
            return
        flows, size_bytes = self.flows or 1, self.size_bytes or BURST_BYTES
        flows_per_spot = self.degree * flows + (self.long_bytes is not None)
        check_flows(duration_ns // self.every_ns * flows_per_spot * (self.spots or 1))
        for transfer in transfers:
            yield transfer._replace(flow_class=transfer.flow_class or MONITORED)
        hosts, spots = topology.hosts, self._spots(topology)
        if self.trains is not None:
            for spot in spots:
                yield from trains(spot, self.trains, self.every_ns, size_bytes, LOADED * duration_ns)
            return
        for start_ns in range(self.every_ns, duration_ns, self.every_ns):
            if spots:
                yield from self._hot(spots, start_ns)
                continue
            receiver = rng.choice(hosts)
            candidates = topology.hosts_of(receiver.switch) if self.near == LEAF else hosts
            senders = [host for host in candidates if host != receiver]
            if self.degree > len(senders):
                raise PatternError(
                    f"bursts must be at most {len(senders)}, the number of hosts that can send to a receiver"
                )
            for sender in rng.sample(senders, self.degree):
                for _ in range(flows):
                    yield Transfer(sender, receiver, size_bytes, start_ns, flow_class=BACKGROUND)

    def _hot(self, spots: Iterable[Spot], start_ns: int) -> Iterator[Transfer]:
        """A burst to each hot spot, and its long flow half a period earlier."""
        assert self.every_ns is not None, "there are bursts"
        for spot in spots:
            if self.long_bytes is not None:
                early_ns = start_ns - self.every_ns // 2
                yield Transfer(spot.far, spot.receiver, self.long_bytes, early_ns, flow_class=BACKGROUND)
            for server in spot.servers:
                for _ in range(self.flows or 1):
                    size_bytes = self.size_bytes or BURST_BYTES
                    yield Transfer(server, spot.receiver, size_bytes, start_ns, flow_class=BACKGROUND)
