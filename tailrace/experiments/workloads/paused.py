# SPDX-License-Identifier: Apache-2.0
"""Flows that are not congested, next to a receiver that is (RLB §II-B, Fig. 2).

    first leaf                                        second leaf
    H_1 .. H_n --- f_1 .. f_n, by all paths ------->  R_1 .. R_n
    H_c ---------- f_c, one long flow ------------->  R_c  <--- bursts of H_b, at the same leaf

Pair i has Poisson arrivals of its own, from H_i to R_i; so their receivers are never congested, and what
holds them up is the fabric. Each server of H_b starts many short flows to R_c at once, at line rate, several
times in a row. PFC then pauses the paths that f_c takes, which `narrow=` of the topology limits: R_c is its
narrow host.

Hosts are taken in their order: n pairs, then H_c and R_c, then on the second leaf the servers of H_b. Only
f_1 .. f_n are measured.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.experiments.plan.reckon import check_flows
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.load import uplink_bps
from tailrace.experiments.workloads.poisson import expected_flows, starts_ns
from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.topology import Host, Topology

_BIT_NS = 8_000_000_000


@dataclass(frozen=True, slots=True)
class Paused:
    """The flows of RLB's motivation.

    sizes: of f_1 .. f_n
    load: share of the first leaf's uplinks that these ask for
    duration_ns: how long new ones of them start
    pairs_total: n
    servers: of H_b
    burst_flows, burst_bytes: flows of one server in one burst, and their size
    bursts: in a row, each when the one before could have been sent at line rate; 0: none
    at_ns: when the first begins
    long_bytes, long_at_ns: of f_c, and when it starts. Before the first mark comes back to it from a queue
        that bursts have filled already, it sends as long as packets wait there; one that starts with the
        bursts is slowed down at once
    """

    sizes: SizeCdf
    load: float
    duration_ns: int
    pairs_total: int
    servers: int
    burst_flows: int
    burst_bytes: int
    bursts: int
    at_ns: int
    long_bytes: int
    long_at_ns: int = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        near, far = self._ends(topology)
        n = self.pairs_total
        receiver = far[n]
        if topology.narrow and receiver.name not in {narrow.host for narrow in topology.narrow}:
            raise PatternError(f"the congested receiver is {receiver.name}; narrow= names another host")
        share = self.load * uplink_bps(topology, near[0].switch) / sum(host.rate_bps for host in near[:n])
        if share > 1:
            raise PatternError(f"load: the links of {n} hosts carry at most {self.load / share:.3g} of it")
        random_flows = expected_flows(near[:n], self.sizes.mean_bytes, share, self.duration_ns)
        check_flows(self.bursts * self.servers * self.burst_flows + random_flows)
        yield Transfer(near[n], receiver, self.long_bytes, self.long_at_ns, flow_class=BACKGROUND)
        yield from self._bursts(far[n + 1 : n + 1 + self.servers], receiver)
        found = [
            (start_ns, number)
            for number, host in enumerate(near[:n])
            for start_ns in starts_ns(host, self.sizes.mean_bytes, share, self.duration_ns, rng)
        ]
        if not found:
            raise PatternError("no flow begins in so short a duration; expected a longer one, or more load")
        for start_ns, number in sorted(found):
            yield Transfer(near[number], far[number], self.sizes.draw(rng), start_ns, flow_class=MONITORED)

    def _bursts(self, servers: tuple[Host, ...], receiver: Host) -> Iterator[Transfer]:
        for burst in range(self.bursts):
            for server in servers:
                sending_ns = self.burst_flows * self.burst_bytes * _BIT_NS // server.rate_bps
                start_ns = self.at_ns + burst * sending_ns
                for _ in range(self.burst_flows):
                    yield Transfer(server, receiver, self.burst_bytes, start_ns, flow_class=BACKGROUND)

    def _ends(self, topology: Topology) -> tuple[tuple[Host, ...], tuple[Host, ...]]:
        """The hosts of the two leaves.

        Raises:
            PatternError: they are not enough.
        """
        if len(topology.leaves) < 2:
            raise PatternError("it takes two switches with hosts")
        near, far = (topology.hosts_of(leaf) for leaf in topology.leaves[:2])
        wanted = self.pairs_total + 1
        if len(near) < wanted or len(far) < wanted + self.servers:
            raise PatternError(
                f"{self.pairs_total} pairs and {self.servers} servers need {wanted} hosts at the first leaf"
                f" and {wanted + self.servers} at the second, found {len(near)} and {len(far)}"
            )
        return near, far
