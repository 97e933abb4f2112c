# SPDX-License-Identifier: Apache-2.0
"""Minimal paths of a Dragonfly (Kim et al. 2008): at most one link within the source's group, then one to the
destination's group, then at most one within that group.

Unlike shortest paths they never lead through a third group, and they use every link between two groups. A
detour is a path through a third group. Next hops depend on where a packet came from:

    entering   from a host or another group: the switch's links to the destination's group, and switches of
               its group that have such links, once for each link
    onward     from a switch of the same group: only the switch's links to the destination's group, so that
               packets do not circulate in a group; if the switch has none (as for ACKs that return by another
               path), switches of its group that have such links

If dead links leave no such path, next hops are those of shortest paths. Packets do not loop even then: each
next hop of a shortest path is nearer, and from the first switch with a minimal path on, the path is minimal.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tailrace.topology.model import Topology
from tailrace.topology.paths.shortest import Down, next_hops

MINIMAL_SWITCHES = 4
"""The most switches on a minimal path."""

DETOUR_SWITCHES = 6
"""The most switches on a detour."""

Ports = tuple[int, ...]


class NextHops(msgspec.Struct, frozen=True):
    """Next hops, sorted; a port occurs once for each path that begins with it. `minimal`: whether the paths
    are minimal.
    """

    entering: Ports
    onward: Ports
    minimal: bool = True


class MinimalRoutes:
    """The minimal next hops of all switches of a Dragonfly while the links in `down` are dead.

    groups: the ids of its groups, sorted
    is_faultless: whether no link is dead, so that all switches of another group have the same next hops
    """

    def __init__(self, topology: Topology, down: Down = frozenset()) -> None:
        """Makes look-up tables of the links."""
        self._topology = topology
        self._group = {switch.name: switch.group for switch in topology.switches}
        self._local: dict[str, dict[int, str]] = {name: {} for name in self._group}
        self._global: dict[str, dict[int, str]] = {name: {} for name in self._group}
        for link in topology.links:
            if (link.a, link.a_port) not in down and (link.b, link.b_port) not in down:
                within = self._group[link.a] == self._group[link.b]
                table = self._local if within else self._global
                table[link.a][link.a_port] = link.b
                table[link.b][link.b_port] = link.a
        self._to_group = {name: self._by_group(links) for name, links in self._global.items()}
        self._shortest = next_hops(topology, down) if down else None
        members: dict[int, int] = {}
        for group in self._group.values():
            members[group] = members.get(group, 0) + 1
        self._complete = {
            group: all(len(set(self._local[n].values())) == members[group] - 1 for n in self._in(group))
            for group in members
        }
        self.groups = tuple(sorted(members))
        self.is_faultless = not down
        self._cache: dict[tuple[str, int], NextHops] = {}
        self._ending: dict[tuple[int, str], bool] = {}

    def _in(self, group: int) -> Iterator[str]:
        return (name for name, group_id in self._group.items() if group_id == group)

    def _by_group(self, links: dict[int, str]) -> dict[int, list[int]]:
        """Ports by the group to which they lead."""
        ports: dict[int, list[int]] = {}
        for port, peer in links.items():
            ports.setdefault(self._group[peer], []).append(port)
        return ports

    def is_global(self, switch: str, port: int) -> bool:
        """Whether a live port of a switch leads to another group."""
        return port in self._global[switch]

    def towards_group(self, switch: str, group: int) -> NextHops:
        """Next hops to another group, to any switch in it."""
        key = (switch, group)
        if key not in self._cache:
            self._cache[key] = self._far(switch, group, None)
        return self._cache[key]

    def towards(self, switch: str, leaf: str) -> NextHops:
        """Next hops to another switch; empty if it is unreachable."""
        group = self._group[leaf]
        if group == self._group[switch]:
            direct = tuple(sorted(port for port, peer in self._local[switch].items() if peer == leaf))
            hops = NextHops(direct, direct)
        elif self._complete[group]:
            hops = self.towards_group(switch, group)
        else:
            hops = self._far(switch, group, leaf)
        if not hops.entering and self._shortest is not None:
            shortest = self._shortest[switch][leaf]
            return NextHops(shortest, shortest, minimal=False)
        return hops

    def detours_end(self, group: int, leaf: str) -> bool:
        """Whether all switches of a group have minimal paths to a leaf of another group, so that no packet
        that takes a detour through the group comes back.
        """
        if self.is_faultless:
            return True
        key = (group, leaf)
        if key not in self._ending:
            self._ending[key] = all(
                hops.minimal and hops.entering
                for hops in (self.towards(name, leaf) for name in self._in(group))
            )
        return self._ending[key]

    def _exits(self, switch: str, group: int, leaf: str | None) -> list[int]:
        """The switch's links to a group, from whose other ends the leaf is reachable."""
        ports = self._to_group[switch].get(group, [])
        if leaf is None:
            return ports
        peers = self._global[switch]
        return [p for p in ports if peers[p] == leaf or leaf in self._local[peers[p]].values()]

    def _far(self, switch: str, group: int, leaf: str | None) -> NextHops:
        direct = self._exits(switch, group, leaf)
        via = [port for port, peer in self._local[switch].items() for _ in self._exits(peer, group, leaf)]
        return NextHops(tuple(sorted(direct + via)), tuple(sorted(direct or via)))
