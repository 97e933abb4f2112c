# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths of any graph, and of networks with tiers, are those that networkx finds; by the entries of
switches every EV takes its path.
"""

from __future__ import annotations

import hashlib
import random
from itertools import pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given, settings

from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.spritz.walk import EvWalk
from tailrace.topology import Topology, parse_topology
from tailrace.topology.paths.bounded import MINIMAL, BoundedPaths
from tailrace.topology.paths.shapes import shape_of
from tests.long import times
from tests.schemes.planned import intent, planned_walker
from tests.topology.brute_force import Path
from tests.topology.graphs import any_network, damaged_tree, hyperx, jellyfish, of

EVS = (1, 2, 3, 257, 0x0102, 0x1234, 0xFFFF)
VIRTUAL = target("virtual")


class Oracle:
    """What networkx says of a network."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.graph = nx.Graph([(link.a, link.b) for link in topology.links])
        self.graph.add_nodes_from(switch.name for switch in topology.switches)
        self.links: dict[str, dict[str, int]] = dict(nx.all_pairs_shortest_path_length(self.graph))
        self.tier = nx.multi_source_dijkstra_path_length(self.graph, set(topology.leaves))

    @property
    def diameter(self) -> int:
        """The largest distance of a switch from a leaf."""
        return max(self.links[s.name][leaf] for s in self.topology.switches for leaf in self.topology.leaves)

    def up_then_down(self, path: Path) -> bool:
        steps = [self.tier[b] - self.tier[a] for a, b in pairwise(path)]
        return 0 not in steps and steps == sorted(steps, reverse=True)

    def tiered(self) -> bool:
        """Whether there are tiers, and between all leaves a shortest path that goes up and then down."""
        return all(self.tier[a] != self.tier[b] for a, b in self.graph.edges) and all(
            any(self.up_then_down(tuple(path)) for path in nx.all_shortest_paths(self.graph, a, b))
            for a, b in permutations(self.topology.leaves, 2)
        )

    def always_up_then_down(self) -> bool:
        """Whether all shortest paths, from whatever switch, do."""
        return all(
            self.up_then_down(tuple(path))
            for switch in self.topology.switches
            for leaf in self.topology.leaves
            for path in nx.all_shortest_paths(self.graph, switch.name, leaf)
        )

    def default(self, switch: str, leaf: str) -> Path:
        """The path by default tables: of all ports that lead nearer, sorted, that at (id + position) mod n."""
        path = [switch]
        while path[-1] != leaf:
            here = path[-1]
            nearer = [
                peer.name
                for _, peer in sorted(self.topology.ports_of(here).items())
                if peer.kind == "switch" and self.links[peer.name][leaf] < self.links[here][leaf]
            ]
            number = self.topology.switch(here).id + self.topology.leaves.index(leaf)
            path.append(nearer[number % len(nearer)])
        return tuple(path)

    def of_graph(self, src: str, dst: str) -> set[Path]:
        """Two free links, then the default path, if no shortest path from there leads back."""
        paths: set[Path] = {(src, dst)} if dst in self.graph[src] else set()
        for first in set(self.graph[src]) - {dst}:
            for second in set(self.graph[first]) - {src}:
                onward = {name for path in nx.all_shortest_paths(self.graph, second, dst) for name in path}
                if not onward & {src, first}:
                    paths.add((src, first, *self.default(second, dst)))
        return paths

    def of_tiers(self, src: str, dst: str) -> set[Path]:
        """Shortest paths of one or two free links up, then the default path."""
        up = [name for name in self.graph[src] if self.tier[name] > self.tier[src]]
        heads: list[Path] = [(src, a) for a in up]
        if self.links[src][dst] > 2:
            heads = [(src, a, c) for a in up for c in self.graph[a] if self.tier[c] > self.tier[a]]
        paths = {(*head[:-1], *self.default(head[-1], dst)) for head in heads}
        return {path for path in paths if len(path) - 1 == self.links[src][dst]}


def check(topology: Topology) -> None:
    """The lists of all pairs of leaves, and the ways of their EVs and of others through the entries."""
    oracle, paths, shape = Oracle(topology), BoundedPaths(topology), shape_of(topology)
    walker = planned_walker(topology, intent(topology, parse_scheme("spritz"), VIRTUAL))
    tiered, most = oracle.tiered(), oracle.diameter + (2 if oracle.diameter < 3 else 4)
    assert tiered == (not shape.detours)
    assert shape.cyclic_links == (0 if tiered and oracle.always_up_then_down() else most)
    host = {leaf: topology.hosts_of(leaf)[0] for leaf in topology.leaves}
    for src, dst in permutations(topology.leaves, 2):
        listed = paths.between(src, dst)
        expected = oracle.of_tiers(src, dst) if tiered else oracle.of_graph(src, dst)
        assert expected == {path.switches for path in listed}
        assert expected
        assert len(listed) == len({path.ev for path in listed}) == len({path.ports for path in listed})
        assert [(path.ev, path.latency_ps) for path in listed] == paths.entries(src, dst)
        shortest = oracle.links[src][dst]
        assert len(listed[0].ports) <= max(2, shortest)
        for path in listed:
            assert len(set(path.switches)) == len(path.switches) <= paths.max_links + 1 <= oracle.diameter + 3
            assert 0 < path.ev < 1 << 16
            assert (path.category == MINIMAL) == (len(path.ports) <= max(2, shortest))
            assert EvWalk(path.switches, path.ports) == walker.walk(host[src], host[dst], path.ev)
            if tiered:
                assert oracle.up_then_down(path.switches)
        for ev in EVS:
            walk = walker.walk(host[src], host[dst], ev)
            assert walk.problem is None
            assert len(walk.ports) <= most


@settings(max_examples=times(300, 6), deadline=None)
@given(any_network())
def test_any_network(topology: Topology) -> None:
    """Also with switches without hosts, and with parallel links: no EV makes a packet loop."""
    check(topology)


@settings(max_examples=times(120, 6), deadline=None)
@given(damaged_tree())
def test_irregular_trees(topology: Topology) -> None:
    """Whatever links a tree lacks, or has twice."""
    check(topology)


@pytest.mark.parametrize(
    "graph",
    [
        *(jellyfish(14, 3), jellyfish(20, 4), hyperx(3, 3), hyperx(2, 3, 3), hyperx(5)),
        *(nx.cycle_graph(9), nx.path_graph(4), nx.hypercube_graph(3)),
    ],
    ids=["jellyfish", "larger jellyfish", "hyperx", "hyperx 3d", "mesh", "ring", "chain", "cube"],
)
def test_low_diameter_networks(graph: nx.Graph) -> None:
    """The bound is the diameter and two links more."""
    topology = of(nx.convert_node_labels_to_integers(graph), hosts=1)
    assert nx.diameter(graph) + 2 == BoundedPaths(topology).max_links
    check(topology)


DIGESTS = {
    "dragonfly:p=1,a=4,h=2,groups=3": "a4c8bb0af03a",
    "dragonfly:p=2,a=1,h=3": "9045ff49f1f3",
    "dragonfly:p=1,a=8,h=4,local=25ns,global=500ns": "edb082ecf5e9",
    "slim-fly:p=1,q=3": "0dd24e5fa100",
    "slim-fly:p=1,q=5,local=25ns,global=500ns": "9df2b14331d1",
    "slim-fly:p=1,q=9": "547ef636d406",
    "fat-tree:k=4": "b82811989dbe",
    "fat-tree:k=8,taper=2,hosts=1": "cc6c2f02e353",
    "leaf-spine:leaves=8,spines=8,hosts=2": "ff0af7f2da53",
}


def digest(spec: str) -> str:
    """Of all lists of up to 200 pairs, with ports and latencies, and of parts of them."""
    topology = parse_topology(f"{spec},rate=100Gbps")
    paths, pairs = BoundedPaths(topology), list(permutations(topology.leaves, 2))
    text: list[object] = []
    for src, dst in random.Random(1).sample(pairs, min(200, len(pairs))):
        text += [
            (p.ev, p.switches, p.ports, p.local, p.global_, p.latency_ps, p.category)
            for p in paths.between(src, dst)
        ]
        text += [paths.entries(src, dst, most, 3) for most in (1, 5)]
    return hashlib.sha256(repr(text).encode()).hexdigest()[:12]


@pytest.mark.parametrize("spec", DIGESTS)
def test_lists_of_the_papers_networks_stay(spec: str) -> None:
    """As they were when Dragonfly, Slim Fly and trees had rules of their own."""
    assert DIGESTS[spec] == digest(spec)
