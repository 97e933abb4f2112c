# SPDX-License-Identifier: Apache-2.0
"""The shape of a network, from which its bounded simple paths follow (Spritz §III; topology.paths.bounded).

    Dragonfly   of that family: groups of completely connected switches
    tiers       no link connects switches at the same distance from hosts (their tier), and between any two
                leaves one of the shortest paths goes up to higher tiers, then down: leaf-spines, fat trees,
                and other trees, also irregular ones
    graph       every other network: a Slim Fly, a Jellyfish, a HyperX

Bounds. Spritz's follow from Valiant routing: in a Slim Fly, of diameter two, any intermediate switch is two
links from the source, and two from the destination. So it is here in every graph: two links, then a shortest
path, which has at most as many links as the diameter D (the largest distance of a switch from a leaf):
together D + 2. In larger graphs only switches up to two links from the source are intermediate switches.
With tiers, paths are shortest paths. In a Dragonfly they have at most 3 local and 2 global links.

Minimal (Table I) are in a Dragonfly the paths without a third group. In other networks they have at most two
links, or as many as a shortest path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from tailrace.topology.kinds import DRAGONFLY
from tailrace.topology.model import Topology
from tailrace.topology.paths.shortest import (
    Distances,
    links_to_hosts,
    max_switches_on_path,
    once_per_network,
)

_CHOSEN_LINKS = 2
"""An EV chooses so many links."""

_NO_LIMIT = 1 << 16
_MINIMAL_LINKS = 2

Ports = tuple[int, ...]


class PathTables(msgspec.Struct, frozen=True):
    """The ECMP tables of one switch: ports in the order of slots.

    first_far, first_near: for the first switch of a path (role ECMP 1 of Spritz), by whether the destination
        is near
    second: for the second switch (role ECMP 2)
    onward: ports to switches that have the second role if the destination is not near, with their names
    """

    first_far: Ports = ()
    first_near: Ports = ()
    second: Ports = ()
    onward: dict[int, str] = {}


class Longest(msgspec.Struct, frozen=True):
    """The longest path of a kind: its links between switches, and their propagation delays together."""

    links: int
    delay_ns: int


class Shape(msgspec.Struct, frozen=True):
    """What decides the bounded simple paths of a network.

    tables: the ECMP tables by switch
    longest, minimal: the longest path, and the longest minimal one
    cyclic_links: the most links of any path, for any EV or links that switches draw; 0 if packets only go up
        and then down, so that switches never wait for each other in a cycle
    detours: whether there are non-minimal paths
    is_near: whether a leaf is in the switch's group, or with tiers below the switches above a leaf
    most_minimal: for two switches, the most links and the most global links of a minimal path
    """

    tables: dict[str, PathTables]
    longest: Longest
    minimal: Longest
    cyclic_links: int
    detours: bool
    is_near: Callable[[str, str], bool]
    most_minimal: Callable[[str, str], tuple[int, int]]

    def evs(self, leaf: str) -> tuple[int, int]:
        """The numbers of EVs that a leaf can use to a far destination, and to a near one."""
        table = self.tables[leaf]
        far = (len(self.tables[table.onward[p]].second) if p in table.onward else 1 for p in table.first_far)
        return sum(far), len(table.first_near)


@once_per_network
def shape_of(topology: Topology) -> Shape:
    """The shape of a network."""
    if topology.kind == DRAGONFLY:
        return _dragonfly(topology)
    distances = Distances(topology)
    tiers = _Tiers(topology, distances)
    return tiers.shape(topology) if tiers.go_up_and_down() else _graph(topology, distances)


def _neighbours(topology: Topology) -> dict[str, dict[int, str]]:
    """The neighbour of each port to another switch, by switch; in order of ports."""
    return {
        switch.name: {
            port: peer.name for port, peer in topology.ports_of(switch.name).items() if peer.kind == "switch"
        }
        for switch in topology.switches
    }


def _dragonfly(topology: Topology) -> Shape:
    group = {switch.name: switch.group for switch in topology.switches}
    neighbours = _neighbours(topology)
    local, far = (
        {
            name: tuple(port for port, peer in peers.items() if (group[peer] == group[name]) is within)
            for name, peers in neighbours.items()
        }
        for within in (True, False)
    )
    tables = {}
    for name, peers in neighbours.items():
        # in small networks some switches have no global links: no path to another group through them
        first = (*(port for port in local[name] if far[peers[port]]), *far[name])
        tables[name] = PathTables(first, local[name], far[name], {port: peers[port] for port in local[name]})
    delays = {True: 0, False: 0}
    for link in topology.links:
        within = group[link.a] == group[link.b]
        delays[within] = max(delays[within], link.delay_ns)

    def longest(locals_: int, globals_: int) -> Longest:
        return Longest(locals_ + globals_, locals_ * delays[True] + globals_ * delays[False])

    sizes = Counter(group.values())
    step = int(max(sizes.values()) > 1)
    if len(sizes) == 1:
        most, minimal = longest(min(2, len(group) - 1), 0), longest(step, 0)
    else:
        minimal = longest(2 * step, 1)
        most = longest(3 * step, 2) if len(sizes) > 2 else minimal
    return Shape(
        tables,
        most,
        minimal,
        most.links,
        True,
        lambda switch, leaf: group[switch] == group[leaf],
        lambda _src, _dst: (_NO_LIMIT, 1),
    )


def _minimal_links(distances: Distances) -> Callable[[str, str], tuple[int, int]]:
    return lambda src, dst: (max(_MINIMAL_LINKS, distances.between(src, dst)), _NO_LIMIT)


def _most_links(distances: Distances) -> int:
    """The most links of any path. Default tables may lead a packet back through its first switch. If the
    destination is two or more links from there, the next switch has the second role again, but only once.
    """
    return distances.longest + _CHOSEN_LINKS * (1 if distances.longest <= _MINIMAL_LINKS else 2)


def _graph(topology: Topology, distances: Distances) -> Shape:
    """Any graph. EVs choose one link to each neighbour: a packet that returned to its first switch by a
    parallel link would take the same two links again.
    """
    ports: dict[str, dict[str, int]] = {switch.name: {} for switch in topology.switches}
    for link in topology.links:
        if link.b not in ports[link.a]:
            ports[link.a][link.b], ports[link.b][link.a] = link.a_port, link.b_port
    tables = {}
    for name, by_peer in ports.items():
        onward = {port: peer for peer, port in by_peer.items()}
        chosen = tuple(sorted(onward))
        tables[name] = PathTables(chosen, (), chosen, onward)
    delay_ns, most = (
        max((link.delay_ns for link in topology.links), default=0),
        distances.longest + _CHOSEN_LINKS,
    )
    minimal = Longest(distances.longest, distances.longest * delay_ns)
    return Shape(
        tables,
        Longest(most, most * delay_ns),
        minimal,
        _most_links(distances),
        True,
        lambda _switch, _leaf: False,
        _minimal_links(distances),
    )


class _Tiers:
    """A network whose switches are in tiers by their distance from hosts."""

    def __init__(self, topology: Topology, distances: Distances) -> None:
        self._distances, self._leaves = distances, topology.leaves
        self._tier = links_to_hosts(topology)
        self._neighbours = _neighbours(topology)
        self._up = {
            name: tuple(port for port, peer in peers.items() if self._tier[peer] > self._tier[name])
            for name, peers in self._neighbours.items()
        }

    def go_up_and_down(self) -> bool:
        """Whether the network has tiers, and between any two leaves one of the shortest paths goes up, then
        down.
        """
        tier, rings = self._tier, self._distances.rings
        if any(
            tier[name] == tier[peer] for name, peers in self._neighbours.items() for peer in peers.values()
        ):
            return False
        # reached: the leaves that a switch reaches by a number of links up, then as many down
        reached = dict(rings[0])
        for name in sorted(tier, key=tier.__getitem__):
            for port in self._up[name]:
                reached[self._neighbours[name][port]] |= reached[name]
        for links, ring in enumerate(rings):
            if links % 2 == 0 and any(ring[leaf] & ~reached[leaf] for leaf in self._leaves):
                return False
            if links % 2:
                reached = {name: self._union(reached, name) for name in reached}
        return True

    def _union(self, leaves: dict[str, int], name: str) -> int:
        """The leaves of all switches above a switch."""
        union = 0
        for port in self._up[name]:
            union |= leaves[self._neighbours[name][port]]
        return union

    def _never_down_and_up(self) -> bool:
        """Whether all shortest paths, from any switch, go up and then down: from a higher switch down only to
        the leaves below it.
        """
        rings = self._distances.rings
        return not any(
            rings[links][self._neighbours[name][port]] & rings[links - 1][name]
            for name, ports in self._up.items()
            for port in ports
            for links in range(self._tier[name] + 2, len(rings))
        )

    def shape(self, topology: Topology) -> Shape:
        tables = {}
        for name, peers in self._neighbours.items():
            up = self._up[name]
            onward = {port: peers[port] for port in up if self._up[peers[port]]}
            if self._tier[name] == 0:
                tables[name] = PathTables(tuple(onward), up, (), onward)
            else:
                tables[name] = PathTables(second=up if self._tier[name] == 1 else ())
        delays = Counter[int]()  # by tier of the lower end, the longest delay
        for link in topology.links:
            low = min(self._tier[link.a], self._tier[link.b])
            delays[low] = max(delays[low], link.delay_ns)
        links = max_switches_on_path(topology) - 1
        longest = Longest(links, 2 * sum(delays[low] for low in range(links // 2)))
        tier, distances = self._tier, self._distances
        return Shape(
            tables,
            longest,
            longest,
            0 if self._never_down_and_up() else _most_links(distances),
            False,
            # one link up is enough
            lambda switch, leaf: tier[switch] + distances.between(switch, leaf) <= 2,
            _minimal_links(distances),
        )
