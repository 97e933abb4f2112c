# SPDX-License-Identifier: Apache-2.0
"""Bursts beside other traffic: every so often several hosts send to one at once, at line rate, short flows
that are over before congestion control can slow them down (RLB §II-B: 64 KB each). They make PFC pause where
the other traffic alone would not (as HPCC, SIGCOMM 2019, §5, adds an incast of 2 % of the capacity), and are
not measured themselves.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from tailrace.experiments.plan.reckon import check_flows
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.topology import Topology
from tailrace.words import SpecError, keys

ANYWHERE, LEAF = FROM = ("any", "leaf")
"""Whose hosts send bursts: all, or those of the receiver's leaf."""

BURST_BYTES = 64_000
"""Of one flow of a burst: RLB §II-B."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts until the end, one each `every_ns`, the first after that time.

    degree: hosts that send to the receiver; they and it are drawn for each burst
    flows, size_bytes: what each of them sends at once
    near: all are of the receiver's own leaf, so that bursts do not cross the fabric, and only the paths of
        others' flows to this receiver are paused (RLB Fig. 2); else of any switch
    """

    degree: Annotated[
        int, keys.integer("bursts", "so many hosts send to one that is drawn", least=1, absent="none")
    ] = 0
    every_ns: Annotated[int | None, keys.time("every", "so often", least=1, absent="needed for bursts")] = (
        None
    )
    near: Annotated[
        str | None,
        keys.choice("from", "whose hosts do: all, or those of its own leaf", FROM, absent=ANYWHERE),
    ] = None
    flows: Annotated[int | None, keys.integer("burst", "flows of each at once", least=1, absent="1")] = None
    size_bytes: Annotated[
        int | None, keys.size("bytes", "of such a flow", least=1, absent="64KB", section="RLB §II-B")
    ] = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense without bursts, or bursts without it."""
        if self.degree and self.every_ns is None:
            raise SpecError("key 'every' is missing")
        given = {
            "every": self.every_ns, "from": self.near, "burst": self.flows, "bytes": self.size_bytes
        }  # fmt: skip
        for key, value in given.items():
            if not self.degree and value is not None:
                raise SpecError(f"{key} must be given only where bursts is")

    def beside(
        self, transfers: Iterable[Transfer], duration_ns: int, topology: Topology, rng: random.Random
    ) -> Iterator[Transfer]:
        """A pattern's transfers, which are the same with and without bursts, and then the bursts."""
        if not self.every_ns:
            yield from transfers
            return
        flows, size_bytes = self.flows or 1, self.size_bytes or BURST_BYTES
        check_flows(duration_ns // self.every_ns * self.degree * flows)
        for transfer in transfers:
            yield transfer._replace(flow_class=MONITORED)
        hosts = topology.hosts
        for start_ns in range(self.every_ns, duration_ns, self.every_ns):
            receiver = rng.choice(hosts)
            around = topology.hosts_of(receiver.switch) if self.near == LEAF else hosts
            others = [host for host in around if host != receiver]
            if self.degree > len(others):
                raise PatternError(
                    f"bursts must be no more than the hosts that can send to one, {len(others)}"
                )
            for sender in rng.sample(others, self.degree):
                for _ in range(flows):
                    yield Transfer(sender, receiver, size_bytes, start_ns, flow_class=BACKGROUND)
