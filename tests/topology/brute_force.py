# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths as networkx finds them among all simple paths: the oracle of topology.paths.bounded."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx

from tailrace.topology import Topology

Path = tuple[str, ...]


def graph_of(topology: Topology) -> nx.Graph[str]:
    """The switches of a network without parallel links."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    assert graph.number_of_edges() == len(topology.links)
    return graph


def types(topology: Topology, path: Path) -> str:
    """The links of a path, each l or g."""
    groups = [topology.switch(name).group for name in path]
    return "".join("lg"[a != b] for a, b in pairwise(groups))


def of_dragonfly(topology: Topology, graph: nx.Graph[str], src: str, dst: str) -> set[Path]:
    """Paths of a canonical Dragonfly: one group between at most, and one local link in each; none leaves its
    group for a destination in it.
    """
    near = topology.switch(src).group == topology.switch(dst).group
    paths = set()
    for nodes in nx.all_simple_paths(graph, src, dst, cutoff=2 if near else 5):
        links = types(topology, tuple(nodes))
        fits = "g" not in links if near else "ll" not in links and links.count("g") <= 2
        if fits:
            paths.add(tuple(nodes))
    return paths


def of_slim_fly(topology: Topology, graph: nx.Graph[str], src: str, dst: str) -> set[Path]:
    """Paths of a Slim Fly: two free links, then a minimal way by the static next hop, if no minimal way would
    come back.
    """
    paths = set()
    for nodes in nx.all_simple_paths(graph, src, dst, cutoff=4):
        if len(nodes) == 5:
            third = nodes[2]
            ways = [way[1] for way in nx.all_shortest_paths(graph, third, dst)]
            if nx.shortest_path_length(graph, third, dst) != 2 or {src, nodes[1]} & set(ways):
                continue
            if nodes[3] != static(topology, third, dst, ways):
                continue
        paths.add(tuple(nodes))
    return paths


def static(topology: Topology, switch: str, leaf: str, ways: list[str]) -> str:
    """The minimal next hop that the default table holds."""
    ports = {peer.name: port for port, peer in topology.ports_of(switch).items()}
    in_order = sorted(set(ways), key=lambda name: ports[name])
    return in_order[(topology.switch(switch).id + topology.leaves.index(leaf)) % len(in_order)]
