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
from functools import reduce
from operator import or_

import msgspec

from tailrace.topology.kinds import DRAGONFLY
from tailrace.topology.model import Topology
from tailrace.topology.paths.shortest import (
    Distances,
    has_tiers,
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
    return _tiers(topology, distances) or _graph(topology, distances)


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
    delay_ns = max(link.delay_ns for link in topology.links)
    minimal, most = distances.longest, distances.longest + _CHOSEN_LINKS
    return Shape(
        tables,
        Longest(most, most * delay_ns),
        Longest(minimal, minimal * delay_ns),
        _most_links(distances),
        True,
        lambda _switch, _leaf: False,
        _minimal_links(distances),
    )


def _tiers(topology: Topology, distances: Distances) -> Shape | None:
    """None without tiers, or if no shortest path between two leaves goes up and then down."""
    tier, rings = links_to_hosts(topology), distances.rings
    up = {
        name: {port: peer for port, peer in peers.items() if tier[peer] > tier[name]}
        for name, peers in _neighbours(topology).items()
    }
    # reached: the leaves that a switch reaches by a number of links up, then as many down
    reached = dict(rings[0])
    for name in sorted(tier, key=tier.__getitem__):
        for peer in up[name].values():
            reached[peer] |= reached[name]
    for ring in rings[::2]:
        if any(ring[leaf] & ~reached[leaf] for leaf in topology.leaves):
            return None
        reached = {name: reduce(or_, map(reached.get, above.values()), 0) for name, above in up.items()}
    if not has_tiers(topology):
        return None
    tables = {}
    for name, above in up.items():
        onward = {port: peer for port, peer in above.items() if up[peer]}
        leaf = PathTables(tuple(onward), tuple(above), (), onward)
        tables[name] = PathTables(second=tuple(above) if tier[name] == 1 else ()) if tier[name] else leaf
    delays = Counter[int]()  # by tier of the lower end, the longest delay
    for link in topology.links:
        low = min(tier[link.a], tier[link.b])
        delays[low] = max(delays[low], link.delay_ns)
    links = max_switches_on_path(topology) - 1
    longest = Longest(links, 2 * sum(delays[low] for low in range(links // 2)))
    # whether a shortest path leads down to a switch that is not above its leaf, and up again
    turns = any(
        rings[links][peer] & rings[links - 1][name]
        for name, above in up.items()
        for peer in above.values()
        for links in range(tier[name] + 2, len(rings))
    )
    return Shape(
        tables,
        longest,
        longest,
        _most_links(distances) if turns else 0,
        False,
        # one link up is enough
        lambda switch, leaf: tier[switch] + distances.between(switch, leaf) <= 2,
        _minimal_links(distances),
    )
