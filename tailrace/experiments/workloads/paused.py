# SPDX-License-Identifier: Apache-2.0
"""Flows to uncongested receivers, at the same leaf as a congested receiver (RLB §II-B, Fig. 2).

    first leaf                                        second leaf
    H_1 .. H_n --- f_1 .. f_n, by all paths ------->  R_1 .. R_n
    H_c ---------- f_c, one long flow ------------->  R_c  <--- bursts of H_b, at the same leaf

Each H_i starts flows to R_i as a Poisson process. R_1 .. R_n have only one sender each, so they are never
congested, and only the fabric delays these flows. H_b is a set of servers. Each of them starts many short
flows to R_c at once, at line rate, several times in a row. PFC then pauses the paths to R_c, which f_c uses.
The topology's `restricted=` limits the number of these paths; if it is given, it must name R_c.

A burst congests R_c once, and congestion control soon slows f_c down. With trains= the congestion lasts: H_c
and the servers send trains of short flows to R_c (bursts.py), instead of f_c and the bursts.

Hosts are used in the order of the topology: the n pairs, then H_c and R_c, then the servers of H_b at the
second leaf. Only f_1 .. f_n are measured.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads.bursts import BURST_BYTES, TRAINS, Spot, trains
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.interval import LOADED
from tailrace.experiments.workloads.load import uplink_bps
from tailrace.experiments.workloads.poisson import DURATION, LOAD, arrivals, expected_flows
from tailrace.experiments.workloads.registry import Sizes, register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import keys
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns
from tailrace.topology import Host, Topology


@register("paused", "flows between two leaves, while bursts to another host make PFC pause some paths")
class Paused(msgspec.Struct, frozen=True):
    """The flows of RLB's motivation: `load` refers to the first leaf's uplinks, `sizes` to f_1 .. f_n.

    A burst starts when the previous burst could have been sent completely at line rate. If the long flow
    starts after bursts have filled the queue, its rate is not reduced before its first marked packet has
    passed that queue. If it starts together with the bursts, its rate is reduced at once.
    """

    sizes: Sizes
    load: Annotated[float, LOAD]
    duration_ns: Annotated[int, DURATION]
    pairs_total: Annotated[
        int, keys.integer("pairs", "number of pairs of hosts whose flows are measured", least=1)
    ]
    servers: Annotated[int, keys.integer("servers", "number of hosts that send the bursts", least=1)]
    burst_flows: Annotated[
        int, keys.integer("burst", "number of flows of each server in a burst", least=1, section="RLB §II-B")
    ] = 40
    burst_bytes: Annotated[int, keys.size("bytes", "size of each flow of a burst", least=1)] = BURST_BYTES
    bursts: Annotated[int, keys.integer("bursts", "number of consecutive bursts; 0: none", least=0)] = 2
    at_ns: Annotated[int, keys.time("at", "start of the first burst")] = 0
    long_bytes: Annotated[
        int,
        keys.size("long", "size of the long flow from the first leaf to the receiver of the bursts", least=1),
    ] = 250_000_000
    long_at_ns: Annotated[int, keys.time("from", "start of the long flow")] = 0
    trains: Annotated[float | None, TRAINS] = None
    period_ns: Annotated[int, keys.time("every", "period of trains", least=1)] = 1_000_000

    def __post_init__(self) -> None:
        """Refuse a spec without size= or cdf=."""
        self.sizes.check_given()

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        near, far = self._ends(topology)
        n = self.pairs_total
        sizes = self.sizes.distribution
        receiver = far[n]
        if topology.restricted and receiver.name not in {each.host for each in topology.restricted}:
            raise PatternError(f"the congested receiver is {receiver.name}; restricted= names another host")
        share = self.load * uplink_bps(topology, near[0].switch) / sum(host.rate_bps for host in near[:n])
        if share > 1:
            raise PatternError(f"load: the links of {n} hosts allow at most {self.load / share:.3g}")
        random_flows = expected_flows(near[:n], sizes.mean_bytes, share, self.duration_ns)
        servers = far[n + 1 : n + 1 + self.servers]
        if self.trains is None:
            check_flows(self.bursts * self.servers * self.burst_flows + random_flows)
            yield Transfer(near[n], receiver, self.long_bytes, self.long_at_ns, flow_class=BACKGROUND)
            yield from self._bursts(servers, receiver)
        else:
            check_flows(random_flows)
            spot, until_ns = Spot(receiver, servers, near[n]), LOADED * self.duration_ns
            yield from trains(spot, self.trains, self.period_ns, self.burst_bytes, until_ns)
        for start_ns, number in arrivals(near[:n], sizes.mean_bytes, share, self.duration_ns, rng):
            yield Transfer(near[number], far[number], sizes.draw(rng), start_ns, flow_class=MONITORED)

    def _bursts(self, servers: tuple[Host, ...], receiver: Host) -> Iterator[Transfer]:
        for burst in range(self.bursts):
            for server in servers:
                # bytes * NS_BITS / (bits/s) is a time in ns
                sending_ns = self.burst_flows * self.burst_bytes * NS_BITS // server.rate_bps
                start_ns = self.at_ns + burst * sending_ns
                for _ in range(self.burst_flows):
                    yield Transfer(server, receiver, self.burst_bytes, start_ns, flow_class=BACKGROUND)

    def _ends(self, topology: Topology) -> tuple[tuple[Host, ...], tuple[Host, ...]]:
        """The hosts of the first two leaves.

        Raises:
            PatternError: there are too few leaves or hosts.
        """
        if len(topology.leaves) < 2:
            raise PatternError("expected a topology with at least two switches that have hosts")
        near, far = (topology.hosts_of(leaf) for leaf in topology.leaves[:2])
        wanted = self.pairs_total + 1
        if len(near) < wanted or len(far) < wanted + self.servers:
            raise PatternError(
                f"{self.pairs_total} pairs and {self.servers} servers need {wanted} hosts at the first leaf"
                f" and {wanted + self.servers} at the second, found {len(near)} and {len(far)}"
            )
        return near, far
