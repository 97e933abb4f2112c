# SPDX-License-Identifier: Apache-2.0
"""Groups of next hops of one switch of a Dragonfly, and the first links of its paths to other groups.

Numbers of groups, with n Dragonfly groups and m leaves:

    1 .. n                 towards a Dragonfly group; the same in every switch, for detours name them
    n+1 .. n+m             towards a leaf of the switch's own group
    n+m+1 .. n+2m          towards leaves to which a fault left fewer paths than to others of their group
    the same, plus n+2m    for packets from a switch of the own group, where those have other next hops

As elsewhere (schemes.blocks.groups), a failure moves the slots of the dead ports only.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.schemes.blocks.groups import Groups, NextHopGroup, Ports, slot_table
from tailrace.topology import Topology
from tailrace.topology.paths.dragonfly import MinimalRoutes, NextHops


@dataclass(frozen=True, slots=True)
class FirstLink:
    """How a path begins: by a port, with so many links at most. `group`: the detour's; 0: it is minimal."""

    port: int
    links: int
    group: int = 0


@dataclass(frozen=True, slots=True)
class FarGroup:
    """A group of next hops to another Dragonfly group: its minimal paths, and the number of its list of
    detours, of which it leaves out `count` from `first` on.
    """

    paths: tuple[FirstLink, ...]
    detours: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class DragonflyPlace:
    """What a switch of a Dragonfly holds. Keys are numbers of groups; `detours` are lists of them."""

    groups: Groups
    onward: dict[int, NextHopGroup]
    far: dict[int, FarGroup]
    detours: tuple[tuple[FirstLink, ...], ...]


class _Planning:
    def __init__(self, topology: Topology, usual: MinimalRoutes, current: MinimalRoutes, switch: str) -> None:
        self._topology, self._usual, self._current, self._switch = topology, usual, current, switch
        self._own = topology.switch(switch).group
        self._onward_offset = len(usual.groups) + 2 * len(topology.leaves)
        # links that a path may have within each group
        self._within = int(len(topology.switches) > len(usual.groups))
        self._made: dict[int, NextHopGroup] = {}
        self._onward: dict[int, NextHopGroup] = {}
        self._far: dict[int, FarGroup] = {}
        # across to a group, and from there as from a host; by the groups that are left out
        self._blocks = {
            group: self._links(current.towards_group(switch, group), 2 + 2 * self._within, group + 1)
            for group in usual.groups
            if group != self._own
        }
        self._lists: dict[frozenset[int], int] = {}
        self._list(frozenset())

    def result(self) -> DragonflyPlace:
        of_leaf: dict[str, int] = {}
        of_group: dict[int, int] = {}
        keepers: dict[int, tuple[NextHops, frozenset[int]]] = {}
        for group in self._blocks:
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
                if self._current.is_faultless and group != self._own:
                    of_group[group] = of_leaf[leaf]
        groups = {group.id: group for group in (*self._made.values(), *self._onward.values())}
        return DragonflyPlace(
            Groups(
                tuple(groups[number] for number in sorted(groups)),
                {leaf: groups[number] for leaf, number in of_leaf.items()},
            ),
            self._onward,
            self._far,
            tuple(self._detours(left_out) for left_out in self._lists),
        )

    def _leaf(
        self, leaf: str, position: int, current: NextHops, keepers: dict[int, tuple[NextHops, frozenset[int]]]
    ) -> int:
        """The number of the group that leads to a leaf. `keepers`: what each Dragonfly group's own holds."""
        usual = self._usual.towards(self._switch, leaf)
        group, count = self._topology.switch(leaf).group, len(self._usual.groups)
        if group == self._own:
            self._add(count + position, usual, current)
            return count + position
        left_out = frozenset(
            third for third in self._blocks if third != group and not self._current.detours_end(third, leaf)
        )
        number = count + len(self._topology.leaves) + position
        state = (current, left_out)
        is_usual = current == self._current.towards_group(self._switch, group)
        if is_usual and keepers.setdefault(group, state) == state:
            number = group + 1
        if number not in self._made:
            self._add(number, usual, current)
        if current.minimal and number not in self._far:
            self._far[number] = self._far_group(group, current, left_out)
        return number

    def _far_group(self, group: int, hops: NextHops, left_out: frozenset[int]) -> FarGroup:
        before = [third for third in self._blocks if third < group and third not in left_out]
        return FarGroup(
            tuple(self._links(hops, 1 + self._within)),
            self._list(left_out),
            sum(len(self._blocks[third]) for third in before),
            len(self._blocks[group]),
        )

    def _list(self, left_out: frozenset[int]) -> int:
        """The number of the list of detours without some groups."""
        return self._lists.setdefault(left_out, len(self._lists))

    def _detours(self, left_out: frozenset[int]) -> tuple[FirstLink, ...]:
        return tuple(link for group, links in self._blocks.items() if group not in left_out for link in links)

    def _links(self, hops: NextHops, links: int, group: int = 0) -> list[FirstLink]:
        """How paths begin; those with a link within this group are longer by that one."""
        return [
            FirstLink(port, links + (not self._current.is_global(self._switch, port)), group)
            for port in hops.entering
        ]

    def _add(self, number: int, usual: NextHops, current: NextHops) -> None:
        """A group towards another switch, or to another Dragonfly group."""
        self._made[number] = self._onward[number] = _group(number, usual.entering, current.entering)
        if current.onward != current.entering:
            self._onward[number] = _group(number + self._onward_offset, usual.onward, current.onward)


def _group(number: int, usual: Ports, current: Ports) -> NextHopGroup:
    members = usual if set(current) <= set(usual) else current
    return NextHopGroup(number, slot_table(members, frozenset(current)), tuple(sorted(set(current))))


def place_in(topology: Topology, usual: MinimalRoutes, current: MinimalRoutes, switch: str) -> DragonflyPlace:
    """What a switch of a Dragonfly holds.

    Args:
        usual: next hops of the faultless network.
        current: next hops now.
    """
    return _Planning(topology, usual, current, switch).result()
