# SPDX-License-Identifier: Apache-2.0
"""Networks of NetworkX's graphs: what a file of node-link JSON describes."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import networkx as nx
from hypothesis import strategies as st

from tailrace.formats.node_link import GRAPH, from_graph
from tailrace.spec import Spec
from tailrace.spec.keys import read
from tailrace.topology import Topology, parse_topology
from tailrace.topology.from_file import FileOptions, topology_of
from tests.topology.test_shortest import networks

RATE_BPS = 10_000_000_000


def of(graph: nx.Graph, **keys: object) -> Topology:
    """The network of a graph; `keys` are those after a file's name."""
    spec = Spec("graph", {key: str(value) for key, value in ({"rate": "10Gbps"} | keys).items()}, "topology")
    return topology_of(from_graph(graph), GRAPH, spec, read(spec, FileOptions))


def jellyfish(switches: int, degree: int, seed: int = 1) -> nx.Graph:
    graph = nx.random_regular_graph(degree, switches, seed=seed)
    assert nx.is_connected(graph)
    return nx.Graph(sorted((min(edge), max(edge)) for edge in graph.edges))


def hyperx(*sizes: int) -> nx.Graph:
    """Its points by number."""
    lattice = reduce(nx.cartesian_product, map(nx.complete_graph, sizes))
    return nx.convert_node_labels_to_integers(lattice, ordering="sorted")


@st.composite
def any_network(draw: st.DrawFn) -> Topology:
    """Up to seven switches, not all with hosts, and parallel links."""
    topology, _ = draw(networks())
    hosts = tuple(replace(host, rate_bps=RATE_BPS) for host in topology.hosts)
    links = tuple(
        replace(link, rate_bps=RATE_BPS, delay_ns=draw(st.sampled_from((0, 500)))) for link in topology.links
    )
    return replace(topology, hosts=hosts, links=links)


@st.composite
def damaged_tree(draw: st.DrawFn) -> Topology:
    """A leaf-spine or fat tree that lacks some links, or has parallel ones."""
    spec = draw(st.sampled_from(("leaf-spine:leaves=4,spines=3,hosts=1", "fat-tree:k=4,hosts=1")))
    topology = parse_topology(f"{spec},rate=10Gbps")
    kept = list(topology.links)
    for link in draw(st.lists(st.sampled_from(topology.links), max_size=5, unique=True)):
        kept.remove(link)
        graph = nx.Graph([(each.a, each.b) for each in kept])
        if len(graph) < len(topology.switches) or not nx.is_connected(graph):
            kept.append(link)
    doubled = draw(st.lists(st.sampled_from(kept), max_size=2, unique=True))
    more = [replace(link, a_port=link.a_port + 20, b_port=link.b_port + 20) for link in doubled]
    return replace(topology, kind="damaged", links=(*kept, *more))
