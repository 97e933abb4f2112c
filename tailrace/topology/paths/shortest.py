# SPDX-License-Identifier: Apache-2.0
"""Shortest paths: the ports by which each switch gets nearer to each leaf.

Since every switch passes a packet to a neighbour that is nearer to the destination, no packet can loop while
all switches agree on what is down. In a fat tree without faults the shortest paths are the up/down paths.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from weakref import WeakKeyDictionary

from tailrace.topology.model import Topology

Down = frozenset[tuple[str, int]]
"""Dead links, each named by (switch, port) of either end."""

Hops = dict[str, dict[str, tuple[int, ...]]]
"""Ports by switch and leaf."""

_faultless: WeakKeyDictionary[object, Hops] = WeakKeyDictionary()
"""The next hops of networks without faults, as long as there are the networks."""

_Neighbours = dict[str, list[tuple[int, str]]]


def _neighbours(topology: Topology, down: AbstractSet[tuple[str, int]]) -> _Neighbours:
    """(port, neighbour) of the live links of each switch, by port."""
    neighbours: _Neighbours = {switch.name: [] for switch in topology.switches}
    for link in topology.links:
        if (link.a, link.a_port) not in down and (link.b, link.b_port) not in down:
            neighbours[link.a].append((link.a_port, link.b))
            neighbours[link.b].append((link.b_port, link.a))
    for found in neighbours.values():
        found.sort()
    return neighbours


def _distances(peers: dict[str, set[str]], start: str) -> dict[str, int]:
    """Hops from each switch that can be reached to `start`."""
    distances: dict[str, int] = {}
    reached, hops = {start}, 0
    while reached:
        distances.update(dict.fromkeys(reached, hops))
        reached = set().union(*map(peers.__getitem__, reached)).difference(distances)
        hops += 1
    return distances


def _peers(neighbours: _Neighbours) -> dict[str, set[str]]:
    return {name: {peer for _, peer in found} for name, found in neighbours.items()}


def next_hops(topology: Topology, down: Down = frozenset()) -> Hops:
    """For each switch and each other switch that has hosts, the sorted ports of all shortest paths.

    A leaf that cannot be reached has no ports. `down` names dead links by (switch, port) of either end. Those
    of the faultless network are found once: nobody may change them.
    """
    if down:
        return _next_hops(topology, down)
    found = _faultless.get(topology.identity)
    if found is None:
        found = _faultless[topology.identity] = _next_hops(topology, down)
    return found


def _next_hops(topology: Topology, down: Down) -> Hops:
    neighbours = _neighbours(topology, down)
    peers = _peers(neighbours)
    hops: Hops = {switch.name: {} for switch in topology.switches}
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    for leaf in topology.leaves:
        distances = _distances(peers, leaf)
        for name, found in neighbours.items():
            if name == leaf:
                continue
            nearer = distances.get(name, 0) - 1
            ports = tuple([port for port, peer in found if distances.get(peer) == nearer])
            # a large network has millions of them, and few that differ
            hops[name][leaf] = same.setdefault(ports, ports)
    return hops


def max_switches_on_path(topology: Topology, down: Down = frozenset()) -> int:
    """The most switches on a shortest path between two hosts that can reach each other."""
    peers = _peers(_neighbours(topology, down))
    most = 0
    for leaf in topology.leaves:
        distances = _distances(peers, leaf)
        most = max(most, *(distances.get(other, 0) for other in topology.leaves))
    return most + 1
