# SPDX-License-Identifier: Apache-2.0
"""Groups of next hops of one switch of a Dragonfly, and the first links of its paths to other groups.

A path to another group is minimal, or a detour through a third group (Valiant routing). Next hops for packets
that enter the Dragonfly group at this switch, from a host or from another group, are `entering`; those for
packets from a switch of the same group are `onward`. NextHops has both; its `minimal` is whether the paths
are minimal. Ids of next-hop groups, with n Dragonfly groups and m
leaves (switches with hosts):

    1 .. n                 towards a Dragonfly group; the same in every switch, since detours name them
    n+1 .. n+m             towards a leaf in the switch's Dragonfly group
    n+m+1 .. n+2m          towards leaves that have fewer paths after a fault than others of their Dragonfly
                           group
    each of these + n+2m   for packets from a switch in the same Dragonfly group, if they need other next hops

A failure moves only the slots of the dead ports (schemes.blocks.groups).
"""

from __future__ import annotations

import msgspec

from tailrace.schemes.blocks.groups import Groups, NextHopGroup, Ports, slot_table
from tailrace.topology import Topology
from tailrace.topology.paths.dragonfly import MinimalRoutes, NextHops


class FirstLink(msgspec.Struct, frozen=True):
    """The first link of a path.

    port: egress port
    links: largest number of links of the path
    group: id of the next-hop group towards the third group of a detour; 0: the path is minimal
    """

    port: int
    links: int
    group: int = 0


class FarGroup(msgspec.Struct, frozen=True):
    """The paths to another Dragonfly group.

    paths: first links of the minimal paths
    detours: index into DragonflyRouting.detours
    first, count: `count` items of that list, from index `first` on, are not used, because they lead through
        the destination's group
    """

    paths: tuple[FirstLink, ...]
    detours: int
    first: int
    count: int


class DragonflyRouting(msgspec.Struct, frozen=True):
    """The groups and paths of a switch of a Dragonfly.

    onward: next-hop groups for packets from switches of the same Dragonfly group, by next-hop group id
    far: paths to other Dragonfly groups, by next-hop group id
    detours: lists of first links, to which `FarGroup.detours` refers
    """

    groups: Groups
    onward: dict[int, NextHopGroup]
    far: dict[int, FarGroup]
    detours: tuple[tuple[FirstLink, ...], ...]


class _RoutingBuilder:
    """Makes the groups and paths of one switch; `usual` has the next hops of the faultless network."""

    def __init__(self, topology: Topology, usual: MinimalRoutes, current: MinimalRoutes, switch: str) -> None:
        self._topology, self._usual, self._current, self._switch = topology, usual, current, switch
        self._group = topology.switch(switch).group
        self._onward_offset = len(usual.groups) + 2 * len(topology.leaves)
        # largest number of links of a path within one group: 0 if a group is a single switch
        self._within = int(len(topology.switches) > len(usual.groups))
        self._made: dict[int, NextHopGroup] = {}
        self._onward: dict[int, NextHopGroup] = {}
        self._far: dict[int, FarGroup] = {}
        # by third group: first links of detours through that group; there packets go on as from a host.
        # After the source's group a detour has two links between groups, and at most one within each of two
        self._detours_via = {
            group: self._links(current.towards_group(switch, group), 2 + 2 * self._within, group + 1)
            for group in usual.groups
            if group != self._group
        }
        self._lists: dict[frozenset[int], int] = {}
        self._list(frozenset())  # list 0 has all detours

    def result(self) -> DragonflyRouting:
        # ids of next-hop groups, by leaf and by Dragonfly group
        of_leaf: dict[str, int] = {}
        of_group: dict[int, int] = {}
        keepers: dict[int, tuple[NextHops, frozenset[int]]] = {}
        for group in self._detours_via:
            hops = self._current.towards_group(self._switch, group)
            if hops.entering:
                self._add(group + 1, self._usual.towards_group(self._switch, group), hops)
        for position, leaf in enumerate(self._topology.leaves, 1):
            if leaf == self._switch:
                continue
            group = self._topology.switch(leaf).group
            if group in of_group:
                of_leaf[leaf] = of_group[group]
                continue
            current = self._current.towards(self._switch, leaf)
            if current.entering:
                of_leaf[leaf] = self._leaf(leaf, position, current, keepers)
                # without faults all leaves of another group have the same next hops
                if self._current.is_faultless and group != self._group:
                    of_group[group] = of_leaf[leaf]
        groups = {group.id: group for group in (*self._made.values(), *self._onward.values())}
        return DragonflyRouting(
            Groups(
                tuple(groups[number] for number in sorted(groups)),
                {leaf: groups[number] for leaf, number in of_leaf.items()},
            ),
            self._onward,
            self._far,
            tuple(self._detours(excluded) for excluded in self._lists),
        )

    def _leaf(
        self, leaf: str, position: int, current: NextHops, keepers: dict[int, tuple[NextHops, frozenset[int]]]
    ) -> int:
        """The id of the next-hop group to a leaf. Leaves of a Dragonfly group share an id; `keepers` has for
        each Dragonfly group the next hops and the excluded detours of that id. A leaf that has other next
        hops or detours after a fault gets an id by its position.
        """
        usual = self._usual.towards(self._switch, leaf)
        group, count = self._topology.switch(leaf).group, len(self._usual.groups)
        if group == self._group:
            self._add(count + position, usual, current)
            return count + position
        excluded = frozenset(
            third
            for third in self._detours_via
            # detours_end: whether all switches of the third group have minimal paths to the leaf
            if third != group and not self._current.detours_end(third, leaf)
        )
        group_id = count + len(self._topology.leaves) + position
        state = (current, excluded)
        is_usual = current == self._current.towards_group(self._switch, group)
        if is_usual and keepers.setdefault(group, state) == state:
            group_id = group + 1
        if group_id not in self._made:
            self._add(group_id, usual, current)
        if current.minimal and group_id not in self._far:
            self._far[group_id] = self._far_group(group, current, excluded)
        return group_id

    def _far_group(self, group: int, hops: NextHops, excluded: frozenset[int]) -> FarGroup:
        before = [third for third in self._detours_via if third < group and third not in excluded]
        return FarGroup(
            tuple(self._links(hops, 1 + self._within)),
            self._list(excluded),
            sum(len(self._detours_via[third]) for third in before),
            len(self._detours_via[group]),
        )

    def _list(self, excluded: frozenset[int]) -> int:
        """The index of the list of detours without those through the groups `excluded`."""
        return self._lists.setdefault(excluded, len(self._lists))

    def _detours(self, excluded: frozenset[int]) -> tuple[FirstLink, ...]:
        return tuple(
            link for group, links in self._detours_via.items() if group not in excluded for link in links
        )

    def _links(self, hops: NextHops, links: int, group: int = 0) -> list[FirstLink]:
        """The first links of paths; a path that begins with a link within the group has one link more."""
        return [
            # a global link leads to another group
            FirstLink(port, links + (not self._current.is_global(self._switch, port)), group)
            for port in hops.entering
        ]

    def _add(self, group_id: int, usual: NextHops, current: NextHops) -> None:
        """Adds a next-hop group towards a switch, or towards another Dragonfly group."""
        self._made[group_id] = self._onward[group_id] = _group(group_id, usual.entering, current.entering)
        if current.onward != current.entering:
            self._onward[group_id] = _group(group_id + self._onward_offset, usual.onward, current.onward)


def _group(group_id: int, usual: Ports, current: Ports) -> NextHopGroup:
    members = usual if set(current) <= set(usual) else current
    return NextHopGroup(group_id, slot_table(members, frozenset(current)), tuple(sorted(set(current))))


def routing_of(
    topology: Topology, usual: MinimalRoutes, current: MinimalRoutes, switch: str
) -> DragonflyRouting:
    """The groups and paths of a switch of a Dragonfly.

    Args:
        topology: a Dragonfly.
        usual: next hops of the faultless network.
        current: the present next hops.
        switch: name of the switch.
    """
    return _RoutingBuilder(topology, usual, current, switch).result()
