# SPDX-License-Identifier: Apache-2.0
"""How large an endpoint's table of EV lists gets (Spritz §III-C, Fig. 3), without listing any path.

Lists are counted, in a Dragonfly by the links that leave a group, in a Slim Fly from one router of each of
the two kinds (0, x, y) and (1, m, c). All of a kind look the same: adding t to x and taking m*t from c keeps
every link, and so does adding t to y and to c, so that any (0, x, y) can be moved to any other, and likewise
any (1, m, c).
"""

from __future__ import annotations

from collections import Counter

from tailrace.topology.kinds import SLIM_FLY, TREES, check_kind
from tailrace.topology.model import Topology

ENTRY_BYTES = 3
"""An entry: an EV and a byte of metadata (Spritz §III-C)."""


def max_list_length(topology: Topology) -> int:
    """The most bounded simple paths of any pair of switches with hosts.

    Raises:
        SpecError: the topology has no such paths.
    """
    check_kind(topology)
    if topology.kind == SLIM_FLY:
        return _max_length_of_slim_fly(topology)
    if topology.kind in TREES:
        return _max_length_of_tree(topology)
    group = {switch.name: switch.group for switch in topology.switches}
    leaving = Counter(
        group[end] for link in topology.links if group[link.a] != group[link.b] for end in (link.a, link.b)
    )
    members = Counter(group.values())
    return max([*leaving.values(), *(count - 1 for count in members.values())])


def endpoint_bytes(topology: Topology) -> int:
    """The upper bound of an endpoint's table in bytes: a list of the longest length for every switch.

    Raises:
        SpecError: the topology has no such paths.
    """
    return len(topology.switches) * max_list_length(topology) * ENTRY_BYTES


def _max_length_of_tree(topology: Topology) -> int:
    """The ways up: to the top of a pod, and from there on where there is more than one pod."""
    group = {switch.name: switch.group for switch in topology.switches}
    up: dict[str, list[str]] = {name: [] for name in group}
    beyond = Counter[str]()
    for link in topology.links:
        # links are built from below to above
        up[link.a].append(link.b)
        beyond[link.a] += group[link.a] != group[link.b]
    return max(sum(max(1, beyond[switch]) for switch in up[leaf]) for leaf in topology.leaves)


def _max_length_of_slim_fly(topology: Topology) -> int:
    near: dict[str, set[str]] = {switch.name: set() for switch in topology.switches}
    for link in topology.links:
        near[link.a].add(link.b)
        near[link.b].add(link.a)
    names = list(near)
    # the kinds (0, x, y) and (1, m, c) have half of the routers each, one after the other
    sources = (names[0], names[len(names) // 2])
    return max(_paths(near, src, dst) for src in sources for dst in names if dst != src)


def _paths(near: dict[str, set[str]], src: str, dst: str) -> int:
    """The paths src - n1 - n2 - (minimal) - dst, of which no minimal way from n2 leads back."""
    ends = near[dst]
    count = 0
    for n1 in near[src]:
        if n1 == dst:
            count += 1
        elif n1 in ends:
            # n2 is dst, or next to it
            count += 1 + len(near[n1] & ends) - (src in ends)
        elif src in ends:
            # n2 is next to dst, or not next to src, through which it would come back
            count += sum(n2 in ends or n2 not in near[src] for n2 in near[n1]) - 1
        else:
            count += len(near[n1]) - 1
    return count
