# SPDX-License-Identifier: Apache-2.0
"""The size of an endpoint's table of EV lists (Spritz §III-C, Fig. 3), computed without listing paths.

A list has an entropy value (EV) for each bounded simple path (loop-free and of bounded length, bounded.py) to
one switch. In a Dragonfly and with tiers, each EV that a source can use has a path. In a Slim Fly paths are
counted from one router of each of the two kinds (0, x, y) and (1, m, c), as all routers of a kind are
equivalent: adding t to x and subtracting m*t from c is an automorphism of the graph, and so is adding t to y
and to c. So any (0, x, y) can be mapped to any other, and likewise any (1, m, c).
"""

from __future__ import annotations

from tailrace.topology.kinds import SLIM_FLY
from tailrace.topology.model import Topology
from tailrace.topology.paths.shapes import shape_of

ENTRY_BYTES = 3
"""Size of an entry: an EV and a byte of metadata (Spritz §III-C)."""


def max_list_length(topology: Topology) -> int:
    """The most bounded simple paths of any pair of switches with hosts; in irregular networks, and in graphs
    other than a Slim Fly, an upper bound.
    """
    if topology.kind == SLIM_FLY:
        return _max_length_of_slim_fly(topology)
    shape = shape_of(topology)
    return max(max(shape.evs(leaf)) for leaf in topology.leaves)


def endpoint_bytes(topology: Topology) -> int:
    """The most bytes of an endpoint's table: for every switch a list of maximal length."""
    return len(topology.switches) * max_list_length(topology) * ENTRY_BYTES


def _max_length_of_slim_fly(topology: Topology) -> int:
    near: dict[str, set[str]] = {switch.name: set() for switch in topology.switches}
    for link in topology.links:
        near[link.a].add(link.b)
        near[link.b].add(link.a)
    names = list(near)
    # the first half of the routers are of kind (0, x, y), the second half of kind (1, m, c)
    sources = (names[0], names[len(names) // 2])
    return max(_paths(near, src, dst) for src in sources for dst in names if dst != src)


def _paths(near: dict[str, set[str]], src: str, dst: str) -> int:
    """The number of paths src - n1 - n2 - (minimal) - dst for which no minimal path from n2 leads back."""
    ends = near[dst]
    count = 0
    for n1 in near[src]:
        if n1 == dst:
            count += 1
        elif n1 in ends:
            # n2 is dst, or a neighbour of dst
            count += 1 + len(near[n1] & ends) - (src in ends)
        elif src in ends:
            # n2 is a neighbour of dst, or no neighbour of src (else it could lead back through src)
            count += sum(n2 in ends or n2 not in near[src] for n2 in near[n1]) - 1
        else:
            count += len(near[n1]) - 1
    return count
