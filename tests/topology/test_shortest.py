# SPDX-License-Identifier: Apache-2.0
"""Next hops are those of all shortest paths, as networkx finds them; with tiers, of those without faults."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.topology import Host, Link, Switch, Topology, max_switches_on_path, next_hops, parse_topology
from tailrace.topology.families.build import host_address, host_mac
from tailrace.topology.paths.shortest import Down, has_tiers

FAMILIES = (
    "leaf-spine:leaves=3,spines=3,hosts=1",
    "fat-tree:k=4",
    "fat-tree:k=4,taper=2",
    "dragonfly:p=1,a=3,h=1",
    "dragonfly:p=1,a=4,h=2,groups=3",
    "slim-fly:q=3,p=1",
)


def graph_of(topology: Topology, down: Down) -> nx.MultiGraph[str]:
    """The switches and the live links, which have the ports of both ends."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    for link in topology.links:
        ends = {link.a: link.a_port, link.b: link.b_port}
        if not set(ends.items()) & down:
            graph.add_edge(link.a, link.b, ports=ends)
    return graph


def tiered(topology: Topology) -> bool:
    """Whether no link joins two switches of one distance from the hosts."""
    graph = graph_of(topology, frozenset())
    tiers = nx.multi_source_dijkstra_path_length(nx.Graph(graph), set(topology.leaves))
    return all(tiers[a] != tiers[b] for a, b in graph.edges())


def brute_force(topology: Topology, down: Down) -> dict[str, dict[str, tuple[int, ...]]]:
    """The same by networkx, from whole paths: the ports of the first links of all shortest ones. Where there are tiers
    a path that is longer than without faults is none.
    """
    graph, whole = graph_of(topology, down), nx.Graph(graph_of(topology, frozenset()))
    longest = dict(nx.all_pairs_shortest_path_length(whole)) if tiered(topology) else {}
    hops: dict[str, dict[str, tuple[int, ...]]] = {}
    for switch in topology.switches:
        hops[switch.name] = {}
        for leaf in topology.leaves:
            if leaf == switch.name:
                continue
            ports: set[int] = set()
            if nx.has_path(graph, switch.name, leaf):
                for path in nx.all_shortest_paths(nx.Graph(graph), switch.name, leaf):
                    if longest and len(path) - 1 > longest[switch.name][leaf]:
                        continue
                    edges = graph.get_edge_data(path[0], path[1]).values()
                    ports |= {edge["ports"][switch.name] for edge in edges}
            hops[switch.name][leaf] = tuple(sorted(ports))
    return hops


@pytest.mark.parametrize("words", FAMILIES)
def test_families(words: str) -> None:
    """In every family the next hops are those of all shortest paths."""
    topology = parse_topology(words)
    assert brute_force(topology, frozenset()) == next_hops(topology)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Topology, Down]:
    """A connected network with parallel links, hosts at some switches, and some links down."""
    count = draw(st.integers(1, 7))
    names = [f"s{i}" for i in range(count)]
    leaves = draw(st.sets(st.sampled_from(names), min_size=1))
    pairs = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
    if count > 1:
        more = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1])
        pairs += draw(st.lists(more, max_size=8))
    used = dict.fromkeys(names, 0)
    hosts, links = [], []
    for number, name in enumerate(sorted(leaves), 1):
        used[name] += 1
        ip = host_address(number, 0)
        hosts.append(Host(f"h{number}", number, ip, host_mac(ip), name, used[name], 1, 0))
    for a, b in pairs:
        used[names[a]] += 1
        used[names[b]] += 1
        links.append(Link(names[a], used[names[a]], names[b], used[names[b]], 1, 0))
    dead = draw(st.sets(st.sampled_from(links))) if links else set()
    down = frozenset((link.a, link.a_port) if draw(st.booleans()) else (link.b, link.b_port) for link in dead)
    switches = tuple(Switch(name, i + 1, "leaf") for i, name in enumerate(names))
    return Topology("test", "test", switches, tuple(hosts), tuple(links)), down


@settings(max_examples=150)
@given(networks())
def test_any_network(case: tuple[Topology, Down]) -> None:
    """In any network, with any links down, the next hops are those of all shortest paths."""
    topology, down = case
    assert brute_force(topology, down) == next_hops(topology, down)


@pytest.mark.parametrize(
    ("words", "tiers"), [*zip(FAMILIES, (True, True, True, False, False, False), strict=True)]
)
def test_tiers(words: str, tiers: bool) -> None:
    """Leaf-spines and fat trees have tiers, Dragonflies and Slim Flies have none."""
    topology = parse_topology(words)
    assert tiers == has_tiers(topology) == tiered(topology)


@settings(max_examples=300)
@given(st.data())
def test_no_circle_whatever_each_switch_knows(data: st.DataObject) -> None:
    """Where there are tiers, packets do not circle though each switch takes other links for dead."""
    topology = parse_topology(data.draw(st.sampled_from(FAMILIES[:3])))
    ends = [(link.a, link.a_port) for link in topology.links]
    dead = st.frozensets(st.sampled_from(ends), max_size=6)
    hops = {name: next_hops(topology, data.draw(dead))[name] for name in (s.name for s in topology.switches)}
    peers = {(link.a, link.a_port): link.b for link in topology.links}
    peers |= {(link.b, link.b_port): link.a for link in topology.links}
    for leaf in topology.leaves:
        onward = [(name, peers[name, port]) for name in hops for port in hops[name].get(leaf, ())]
        assert nx.is_directed_acyclic_graph(nx.DiGraph(onward))


def test_up_then_down_only() -> None:
    """A spine whose link to a leaf is dead has no way round by another leaf, which would send it up again."""
    topology = parse_topology("leaf-spine:leaves=3,spines=2,hosts=1")
    hops = next_hops(topology, frozenset({("spine1", 2)}))
    assert () == hops["spine1"]["leaf2"]
    assert (3,) == hops["leaf1"]["leaf2"]
    assert (2, 3) == hops["leaf1"]["leaf3"]


def test_unreachable() -> None:
    """A leaf that is cut off has no next hops, and still has some to nobody."""
    topology = parse_topology("leaf-spine:leaves=2,spines=1,hosts=1")
    hops = next_hops(topology, frozenset({("spine1", 2)}))
    assert {"leaf1": {"leaf2": ()}, "leaf2": {"leaf1": ()}, "spine1": {"leaf1": (1,), "leaf2": ()}} == hops
    assert max_switches_on_path(topology, frozenset({("spine1", 2)})) == 1


@pytest.mark.parametrize(
    ("words", "switches"),
    [("leaf-spine:leaves=1", 1), ("leaf-spine", 3), ("fat-tree:k=4", 5), ("dragonfly", 4), ("slim-fly", 3)],
)
def test_longest_path(words: str, switches: int) -> None:
    """The longest shortest path is that of the family's diameter."""
    assert switches == max_switches_on_path(parse_topology(words))
