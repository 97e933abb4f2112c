# SPDX-License-Identifier: Apache-2.0
"""Shortest paths: the ports by which each switch gets nearer to each leaf.

Since every switch passes a packet to a neighbour that is nearer to the destination, no packet can loop while
all switches agree on what is down. In a fat tree without faults the shortest paths are the up/down paths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set as AbstractSet

from tailrace.topology.model import Topology

Down = frozenset[tuple[str, int]]
"""Dead links, each named by (switch, port) of either end."""

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


def _distances(neighbours: _Neighbours, start: str) -> dict[str, int]:
    """Hops from each switch that can be reached to `start`."""
    distances = {start: 0}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for _, neighbour in neighbours[name]:
            if neighbour not in distances:
                distances[neighbour] = distances[name] + 1
                waiting.append(neighbour)
    return distances


def next_hops(topology: Topology, down: Down = frozenset()) -> dict[str, dict[str, tuple[int, ...]]]:
    """For each switch and each other switch that has hosts, the sorted ports of all shortest paths.

    A leaf that cannot be reached has no ports. `down` names dead links by (switch, port) of either end.
    """
    neighbours = _neighbours(topology, down)
    hops: dict[str, dict[str, tuple[int, ...]]] = {switch.name: {} for switch in topology.switches}
    for leaf in topology.leaves:
        distances = _distances(neighbours, leaf)
        for name, found in neighbours.items():
            if name == leaf:
                continue
            here = distances.get(name)
            nearer = () if here is None else (port for port, peer in found if distances[peer] == here - 1)
            hops[name][leaf] = tuple(nearer)
    return hops


def max_switches_on_path(topology: Topology, down: Down = frozenset()) -> int:
    """The most switches on a shortest path between two hosts that can reach each other."""
    neighbours = _neighbours(topology, down)
    most = 0
    for leaf in topology.leaves:
        distances = _distances(neighbours, leaf)
        most = max(most, *(distances.get(other, 0) for other in topology.leaves))
    return most + 1
