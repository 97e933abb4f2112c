# SPDX-License-Identifier: Apache-2.0
"""Three-level fat tree of k-port switches, with tapering at the edge (Flowcut §III-B1).

There are k pods of k/2 edge switches. An edge switch has k/2 hosts and, with taper t, k/(2t) uplinks, one to
each of the k/(2t) aggregation switches of the same pod. An aggregation switch has k/2 links down and k/2 up;
the i-th aggregation switches of all pods connect to the same block of k/2 core switches, the i-th. Without
taper there are k³/4 hosts and full bisection bandwidth.

Ports: edge: hosts, then aggregation switches; agg: edges, then cores; core: port p leads to pod p.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tailrace.spec import SpecError, keys
from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import LinkOptions, register
from tailrace.topology.model import Restricted
from tailrace.topology.paths.restricted import RESTRICTED


@register("fat-tree", "a three-level fat tree, with or without tapering at the edge")
class FatTree(msgspec.Struct, frozen=True):
    """A fat tree of k-port switches."""

    links: LinkOptions
    k: Annotated[int, keys.integer("k", "ports per switch, an even number", least=2)] = 4
    taper: Annotated[
        int, keys.integer("taper", "hosts per uplink of an edge switch; a divisor of k/2", least=1)
    ] = 1
    hosts: Annotated[int | None, keys.integer("hosts", "hosts per edge switch", least=1, absent="k/2")] = None
    restricted: Annotated[tuple[Restricted, ...] | None, RESTRICTED] = None

    def __post_init__(self) -> None:
        """Raises SpecError for values that give no fat tree."""
        if self.k % 2:
            raise SpecError(f"k must be even, found '{self.k}'")
        if self.k // 2 % self.taper:
            raise SpecError(f"taper must divide k/2 = {self.k // 2}, found '{self.taper}'")

    def build(self, builder: Builder) -> None:
        k, half = self.k, self.k // 2
        hosts = half if self.hosts is None else self.hosts
        uplinks = half // self.taper
        edges_total, aggs_total = k * half, k * uplinks
        # refuses a network that is too large, before it is built
        builder.expect(
            switches=edges_total + aggs_total + uplinks * half,
            hosts=edges_total * hosts,
            links=edges_total * uplinks + aggs_total * half,
        )
        pods = range(1, k + 1)
        edges = {
            pod: [builder.switch(f"edge{pod}_{i}", "edge", pod - 1, hosts) for i in range(1, half + 1)]
            for pod in pods
        }
        aggs = {
            pod: [builder.switch(f"agg{pod}_{i}", "agg", pod - 1) for i in range(1, uplinks + 1)]
            for pod in pods
        }
        cores = [builder.switch(f"core{i}", "core") for i in range(1, uplinks * half + 1)]
        for pod in pods:
            for edge in edges[pod]:
                for agg in aggs[pod]:
                    builder.link(edge, agg)
            for index, agg in enumerate(aggs[pod]):
                for core in cores[index * half : (index + 1) * half]:
                    builder.link(agg, core)
        builder.restrict(self.restricted)
