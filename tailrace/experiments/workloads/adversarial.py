# SPDX-License-Identifier: Apache-2.0
"""The pattern that hurts minimal routing most, one for each kind of low-diameter network.

Dragonfly: every host of group i sends to the host of the same index in group i + 1 (J. Kim et al.,
Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, §4.2: all minimal paths of a group share
the few links to the next one).

Slim Fly: routers are put into chains a - x - y - b of neighbours. The hosts of a and those of y send to each
other; so do those of x and b. x is the only common neighbour of a and y, and y is the only one of x and b, so
the minimal paths from a and x share the link x -> y, and those from y and b share y -> x: each direction
carries the traffic of two routers' hosts, any other link carries that of one router (after M. Besta and T.
Hoefler, Slim Fly: A Cost Effective Low-Diameter Network Topology, SC 2014: routers at distance two whose
paths share a link). Chains are found by a random greedy search; routers left over send to one another in a
ring. A Slim Fly has 2q² routers, a number that chains of four do not divide if q is odd: then at least two
are left.

Both are permutations: every host sends to exactly one host and receives from exactly one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tailrace.experiments.workloads.registry import DEFAULT_BYTES, JITTER, SIZE, register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.topology import Host, Topology

_SEARCHES = 16
"""Number of random searches, of which the one with the fewest routers left over is used."""

Chain = tuple[str, str, str, str]


@register("adversarial", "the worst-case permutation for minimal routing, in a Dragonfly or a Slim Fly")
class Adversarial(msgspec.Struct, frozen=True):
    """Every host sends `size_bytes`."""

    size_bytes: Annotated[int, SIZE] = DEFAULT_BYTES
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        for sender, receiver in _pairs(topology, rng):
            yield Transfer(sender, receiver, self.size_bytes, rng.randint(0, self.jitter_ns))


def _pairs(topology: Topology, rng: random.Random) -> list[tuple[Host, Host]]:
    if topology.kind == "dragonfly":
        return _next_groups(topology)
    if topology.kind == "slim-fly":
        return _shared_links(topology, rng)
    raise PatternError(f"the pattern exists for a dragonfly and for a slim-fly, not for a {topology.kind}")


def _next_groups(topology: Topology) -> list[tuple[Host, Host]]:
    groups: dict[int, list[Host]] = {}
    for switch in topology.switches:
        groups.setdefault(switch.group, []).extend(topology.hosts_of(switch.name))
    if len(groups) < 2:
        raise PatternError("all hosts are in one group")
    senders = [groups[number] for number in sorted(groups)]
    receivers = [*senders[1:], senders[0]]
    return [pair for a, b in zip(senders, receivers, strict=True) for pair in zip(a, b, strict=True)]


def _shared_links(topology: Topology, rng: random.Random) -> list[tuple[Host, Host]]:
    disjoint, unchained = chains(topology, rng)
    router_pairs = [pair for a, x, y, b in disjoint for pair in ((a, y), (y, a), (x, b), (b, x))]
    if len(unchained) > 1:
        router_pairs += zip(unchained, [*unchained[1:], unchained[0]], strict=True)
    return [
        pair
        for sender, receiver in router_pairs
        for pair in zip(topology.hosts_of(sender), topology.hosts_of(receiver), strict=True)
    ]


def chains(topology: Topology, rng: random.Random) -> tuple[list[Chain], list[str]]:
    """Disjoint chains of routers, and the routers in no chain: the best of a few random searches."""
    neighbours_of: dict[str, set[str]] = {switch.name: set() for switch in topology.switches}
    for link in topology.links:
        neighbours_of[link.a].add(link.b)
        neighbours_of[link.b].add(link.a)
    best: tuple[list[Chain], list[str]] = ([], list(neighbours_of))
    for _ in range(_SEARCHES):
        disjoint, free = _search(neighbours_of, rng)
        if len(free) < len(best[1]):
            best = disjoint, free
    return best


def _search(neighbours_of: dict[str, set[str]], rng: random.Random) -> tuple[list[Chain], list[str]]:
    shuffled = list(neighbours_of)
    rng.shuffle(shuffled)
    free = dict.fromkeys(shuffled)
    disjoint = []
    for x in shuffled:
        chain = _chain(neighbours_of, free, x) if x in free else None
        if chain is not None:
            disjoint.append(chain)
            for router in chain:
                del free[router]
    return disjoint, list(free)


def _chain(neighbours_of: dict[str, set[str]], free: dict[str, None], x: str) -> Chain | None:
    """A chain of free routers whose second router is x; None if there is none."""
    near_x = neighbours_of[x]
    free_near_x = [router for router in free if router in near_x]
    for y in free_near_x:
        near_y = neighbours_of[y]
        before = [a for a in free_near_x if a != y and a not in near_y and neighbours_of[a] & near_y == {x}]
        after = [b for b in free if b in near_y and b not in near_x and neighbours_of[b] & near_x == {y}]
        for a in before:
            for b in after:
                if a != b:
                    return a, x, y, b
    return None
