# SPDX-License-Identifier: Apache-2.0
"""Bursts beside other traffic: every so often several hosts send to one at once, at line rate, short flows
that are over before congestion control can slow them down (RLB §II-B: 64 KB each). They make PFC pause where
the other traffic alone would not (as HPCC, SIGCOMM 2019, §5, adds an incast of 2 % of the capacity), and are
not measured themselves.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.experiments.plan.reckon import check_flows
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.transfer import Pattern, PatternError, Transfer
from tailrace.topology import Topology


@dataclass(frozen=True, slots=True)
class Bursty:
    """`pattern`, and bursts until `duration_ns`, one each `every_ns`, the first after that time.

    degree: hosts that send to the receiver; they and it are drawn for each burst
    flows, size_bytes: what each of them sends at once
    near: all are of the receiver's own leaf, so that bursts do not cross the fabric, and only the paths of
        others' flows to this receiver are paused (RLB Fig. 2); else of any switch
    """

    pattern: Pattern
    degree: int
    flows: int
    size_bytes: int
    every_ns: int
    duration_ns: int
    near: bool = False

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern. What the pattern asks for is the same with and without bursts."""
        check_flows(self.duration_ns // self.every_ns * self.degree * self.flows)
        for transfer in self.pattern.transfers(topology, rng):
            yield transfer._replace(flow_class=MONITORED)
        hosts = topology.hosts
        for start_ns in range(self.every_ns, self.duration_ns, self.every_ns):
            receiver = rng.choice(hosts)
            around = topology.hosts_of(receiver.switch) if self.near else hosts
            others = [host for host in around if host != receiver]
            if self.degree > len(others):
                raise PatternError(
                    f"bursts must be no more than the hosts that can send to one, {len(others)}"
                )
            for sender in rng.sample(others, self.degree):
                for _ in range(self.flows):
                    yield Transfer(sender, receiver, self.size_bytes, start_ns, flow_class=BACKGROUND)
