# SPDX-License-Identifier: Apache-2.0
"""Shortest paths: the ports through which each switch leads packets nearer to each leaf (switch with hosts).

Since every switch forwards a packet to a neighbour that is nearer to the destination, no packet can loop
while all switches have been informed of the same dead links. In a network with tiers switches may be informed
of different dead links: there a port must also lead nearer in the network without faults, so no packet comes
back to a switch. In leaf-spines and fat trees such paths lead up and then down, and leaves without such a
path count as unreachable; RFC 7938 §5.2.1 achieves the same with one AS number for all spines. Otherwise, a
packet that goes down and up again could reach a switch that is informed of more failures and sends the packet
back. In a lossless network such a loop can become a deadlock of pauses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from tailrace.topology.model import Topology

Down = frozenset[tuple[str, int]]
"""Dead links, each identified by (switch, port) of either end."""

Ports = tuple[int, ...]

Hops = dict[str, dict[str, Ports]]
"""Ports by switch and leaf."""

T = TypeVar("T")

_Neighbours = dict[str, list[tuple[int, str]]]

_Rings = list[dict[str, int]]
"""By distance in links, for each switch the set of leaves at that distance, as bits: bit i is the i-th leaf.
"""


def _neighbours(topology: Topology, down: AbstractSet[tuple[str, int]]) -> _Neighbours:
    """The (port, neighbour) pairs of the live links of each switch, in order of ports."""
    neighbours: _Neighbours = {switch.name: [] for switch in topology.switches}
    for link in topology.links:
        if (link.a, link.a_port) not in down and (link.b, link.b_port) not in down:
            neighbours[link.a].append((link.a_port, link.b))
            neighbours[link.b].append((link.b_port, link.a))
    for live in neighbours.values():
        live.sort()
    return neighbours


def _rings(topology: Topology, neighbours: _Neighbours, faultless: _Rings | None) -> _Rings:
    """A breadth-first search from all leaves at once; returns a ring per distance, the last one not empty.

    Args:
        topology: has the leaves.
        neighbours: by switch, its neighbours over live links.
        faultless: rings of the faultless network; a leaf at a greater distance than in these counts as
            unreachable. None: no such limit.
    """
    peers = {name: {peer for _, peer in adjacent} for name, adjacent in neighbours.items()}
    ring = dict.fromkeys(peers, 0) | {leaf: 1 << i for i, leaf in enumerate(topology.leaves)}
    reached, rings = dict(ring), []
    while any(ring.values()):
        rings.append(ring)
        next_ring = {}
        for name, near in peers.items():
            reachable = 0
            for peer in near:
                reachable |= ring[peer]
            next_ring[name] = reachable & ~reached[name]
            if faultless is not None:
                next_ring[name] &= faultless[len(rings)][name] if len(rings) < len(faultless) else 0
        for name, reachable in next_ring.items():
            reached[name] |= reachable
        ring = next_ring
    return rings


def once_per_network(find: Callable[[Topology], T]) -> Callable[[Topology], T]:
    """Caches the function's result, as long as the network exists. The result must not refer to it."""
    cache: WeakKeyDictionary[object, T] = WeakKeyDictionary()

    @wraps(find)
    def cached(topology: Topology) -> T:
        if topology.identity not in cache:
            cache[topology.identity] = find(topology)
        return cache[topology.identity]

    return cached


def _once_without_faults(find: Callable[[Topology, Down], T]) -> Callable[..., T]:
    """Caches the function's result for a network without faults, as long as the network exists."""
    faultless = once_per_network(lambda topology: find(topology, frozenset()))

    @wraps(find)
    def cached(topology: Topology, down: Down = frozenset()) -> T:
        return find(topology, down) if down else faultless(topology)

    return cached


def links_to_hosts(topology: Topology) -> dict[str, int]:
    """The distance in links of each switch from the nearest switch that has hosts."""
    neighbours = _neighbours(topology, frozenset())
    distances = dict.fromkeys(topology.leaves, 0)
    to_visit = list(topology.leaves)
    for name in to_visit:
        for _, peer in neighbours[name]:
            if peer not in distances:
                distances[peer] = distances[name] + 1
                to_visit.append(peer)
    return distances


def has_tiers(topology: Topology) -> bool:
    """Whether the network has tiers: no link connects switches with the same distance to hosts."""
    tiers = links_to_hosts(topology)
    return all(tiers[link.a] != tiers[link.b] for link in topology.links)


@_once_without_faults
def _distances(topology: Topology, down: Down = frozenset()) -> _Rings:
    """The distances of leaves from switches, over ports that `next_hops` may use."""
    faultless = _distances(topology) if down and has_tiers(topology) else None
    return _rings(topology, _neighbours(topology, down), faultless)


@_once_without_faults
def next_hops(topology: Topology, down: Down = frozenset()) -> Hops:
    """For each switch and each other switch with hosts, the sorted ports of all shortest paths; in a network
    with tiers, only of paths that are shortest without faults, too.

    An unreachable leaf has no ports. `down` has dead links, by (switch, port) of either end. The result is
    shared, and must not be changed.
    """
    neighbours = _neighbours(topology, down)
    rings = _distances(topology, down)
    leaves = topology.leaves
    interned: dict[Ports, Ports] = {}
    hops: Hops = {}
    for name, adjacent in neighbours.items():
        ports: list[Ports] = [()] * len(leaves)
        for nearer, ring in itertools.pairwise(rings):
            for chosen, leaf_bits in _by_ports(adjacent, nearer, ring[name]).items():
                # a large network has millions of port lists, of which few differ
                shared = interned.setdefault(chosen, chosen)
                for i in _set_bits(leaf_bits):
                    ports[i] = shared
        hops[name] = dict(zip(leaves, ports, strict=True))
        hops[name].pop(name, None)
    return hops


def _by_ports(adjacent: list[tuple[int, str]], nearer: dict[str, int], leaves: int) -> dict[Ports, int]:
    """Groups leaves (bits) by the ports to neighbours that have them in the ring `nearer`."""
    parts: dict[Ports, int] = {(): leaves}
    for port, peer in adjacent:
        peer_bits = nearer[peer]
        split = {}
        for ports, leaf_bits in parts.items():
            both = leaf_bits & peer_bits
            if both:
                longer = (*ports, port)
                split[longer] = both
            if both != leaf_bits:
                split[ports] = leaf_bits ^ both
        parts = split
    return parts


def _set_bits(bits: int) -> Iterator[int]:
    """The indices of the bits that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@_once_without_faults
def max_switches_on_path(topology: Topology, down: Down = frozenset()) -> int:
    """The most switches on a shortest path between two hosts that can reach each other."""
    rings = _distances(topology, down)
    return max(links for links, ring in enumerate(rings) if any(ring[leaf] for leaf in topology.leaves)) + 1


class Distances:
    """The links of shortest paths from switches to leaves, without faults.

    rings: by number of links, for each switch the leaves at that distance, as bits in the order of leaves
    longest: the largest distance of a switch from a leaf
    """

    def __init__(self, topology: Topology) -> None:
        self.rings = _distances(topology)
        self.longest = len(self.rings) - 1
        self._bits = {leaf: 1 << number for number, leaf in enumerate(topology.leaves)}

    def between(self, switch: str, leaf: str) -> int:
        """The number of links of a shortest path."""
        bit = self._bits[leaf]
        return next(links for links, ring in enumerate(self.rings) if ring[switch] & bit)
