# SPDX-License-Identifier: Apache-2.0
"""Minimal next hops of a Dragonfly, against all paths that a search finds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.topology import Topology, next_hops, parse_topology
from tailrace.topology.paths.dragonfly import MinimalRoutes, NextHops
from tailrace.topology.paths.shortest import Down

FAMILIES = (
    "dragonfly:p=1,a=3,h=1",
    "dragonfly:p=1,a=4,h=2,groups=3",
    "dragonfly:p=1,a=2,h=5,groups=3",
    "dragonfly:p=1,a=1,h=3",
    "dragonfly:p=1,a=3,h=1,groups=2",
)


def alive(topology: Topology, down: Down, switch: str) -> dict[int, str]:
    """The neighbours of a switch by live port."""
    return {
        port: peer.name
        for port, peer in topology.ports_of(switch).items()
        if peer.kind == "switch" and not {(switch, port), (peer.name, peer.port)} & down
    }


def minimal_paths(topology: Topology, down: Down, start: str, leaf: str) -> list[list[int]]:
    """All minimal paths between two switches as the ports that they take, by search."""
    group = {switch.name: switch.group for switch in topology.switches}
    ways: list[list[int]] = []

    def search(here: str, within: int, crossed: bool, ports: list[int]) -> None:
        if here == leaf:
            ways.append(ports)
            return
        for port, peer in alive(topology, down, here).items():
            if group[peer] == group[here]:
                at_end = group[here] == group[leaf]
                if within == 0 and (not at_end or peer == leaf):
                    search(peer, 1, crossed, [*ports, port])
            elif not crossed and group[peer] == group[leaf]:
                search(peer, 0, True, [*ports, port])

    search(start, 0, False, [])
    return ways


def expected(topology: Topology, down: Down, switch: str, leaf: str) -> tuple[tuple[int, ...], bool]:
    """The first ports of all minimal paths; False where there is none."""
    paths = minimal_paths(topology, down, switch, leaf)
    return tuple(sorted(path[0] for path in paths)), bool(paths)


def check(topology: Topology, down: Down) -> None:
    routes, shortest = MinimalRoutes(topology, down), next_hops(topology, down)
    group = {switch.name: switch.group for switch in topology.switches}
    for switch in topology.switches:
        for leaf in topology.leaves:
            if leaf == switch.name:
                continue
            hops = routes.towards(switch.name, leaf)
            ports, exists = expected(topology, down, switch.name, leaf)
            if exists:
                assert hops.entering == ports
                neighbours = alive(topology, down, switch.name)
                outgoing = tuple(port for port in ports if group[neighbours[port]] != group[switch.name])
                assert hops.onward == (outgoing or ports)
                assert hops.minimal
            else:
                ports = shortest[switch.name][leaf]
                assert hops == NextHops(ports, ports, minimal=not down)


@pytest.mark.parametrize("words", FAMILIES)
def test_families(words: str) -> None:
    """In the faultless network every pair has minimal paths, and a port is there once for each of them."""
    topology = parse_topology(words)
    check(topology, frozenset())
    assert all(
        expected(topology, frozenset(), a.name, b)[1]
        for a in topology.switches
        for b in topology.leaves
        if a.name != b
    )


@settings(max_examples=40)
@given(st.data())
def test_faults(data: st.DataObject) -> None:
    """Any links may be down; where they leave no minimal path, next hops are those of shortest ones."""
    topology = parse_topology(data.draw(st.sampled_from(FAMILIES)))
    dead = data.draw(st.sets(st.sampled_from(topology.links), max_size=6))
    check(topology, frozenset((link.b, link.b_port) for link in dead))


def test_links_to_a_group() -> None:
    """The paper's Dragonfly: each of the 16 links between two groups is a minimal path, one of them a router's own."""
    topology = parse_topology("dragonfly:p=16,a=16,h=3,groups=4")
    routes = MinimalRoutes(topology)
    for group in (1, 2, 3):
        hops = routes.towards_group("r1_5", group)
        assert (16, 1) == (len(set(hops.entering)), len(hops.onward))
        assert Counter(routes.is_global("r1_5", port) for port in hops.entering) == {False: 15, True: 1}
    assert (0, 1, 2, 3) == routes.groups


def test_detours_end() -> None:
    """A group is no way to a leaf where one of its switches has lost its minimal path there."""
    topology = parse_topology("dragonfly:p=1,a=2,h=1")
    leaves = [leaf for leaf in topology.leaves if topology.switch(leaf).group != 1]
    assert all(MinimalRoutes(topology).detours_end(1, leaf) for leaf in leaves)
    group = {switch.name: switch.group for switch in topology.switches}
    (link,) = [link for link in topology.links if {group[link.a], group[link.b]} == {1, 2}]
    routes = MinimalRoutes(topology, frozenset({(link.a, link.a_port)}))
    assert [routes.detours_end(1, leaf) for leaf in leaves] == [group[leaf] == 0 for leaf in leaves]
