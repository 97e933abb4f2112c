# SPDX-License-Identifier: Apache-2.0
"""The least delay to a switch with hosts, by the number of links: against all shortest paths, one by one."""

from __future__ import annotations

import pytest

from tailrace.topology import parse_topology
from tailrace.topology.model import Topology
from tailrace.topology.paths.shortest import next_hops
from tailrace.topology.timing import least_delays_ns

NETWORKS = (
    "leaf-spine:leaves=3,spines=2,hosts=1,rate=10Gbps,delay=2us",
    "fat-tree:k=4,rate=10Gbps,delay=1us",
    "dragonfly:p=1,a=4,h=1,rate=10Gbps,local=25ns,global=500ns,host=10ns,latency=300ns",
    "slim-fly:p=1,q=3,rate=10Gbps,delay=1us",
)


def _walks(topology: Topology, name: str, leaf: str) -> list[tuple[int, int]]:
    """Links and delay of each shortest path."""
    if name == leaf:
        return [(0, 0)]
    hops, ports, walks = next_hops(topology), topology.ports_of(name), []
    delays = {(link.a, link.a_port): link.delay_ns for link in topology.links}
    delays |= {(link.b, link.b_port): link.delay_ns for link in topology.links}
    for port in hops[name][leaf]:
        link_ns = delays[name, port] + topology.latency_ns
        walks += [(links + 1, ns + link_ns) for links, ns in _walks(topology, ports[port].name, leaf)]
    return walks


@pytest.mark.parametrize("words", NETWORKS)
def test_of_all_shortest_paths(words: str) -> None:
    topology = parse_topology(words)
    for switch in topology.switches:
        least: dict[int, int] = {}
        for leaf in topology.leaves:
            for links, ns in _walks(topology, switch.name, leaf):
                if links:
                    least[links] = min(ns, least.get(links, ns))
        assert least_delays_ns(topology)[switch.name] == least
