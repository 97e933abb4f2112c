# SPDX-License-Identifier: Apache-2.0
"""The pattern that hurts minimal routing most, one for each kind of low-diameter network.

Dragonfly: every host of group i sends to the host of the same index in group i + `shift` (J. Kim et al.,
Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, §4.2: all minimal paths of a group share
the few links to the next one). The shift decides how hard the pattern is for Valiant routing, too. With
a = 8, h = 4 and shift 1, 77 % of the paths through a third group leave it by the router where they came in.
With shift 5 none do, and one link within that group carries the traffic of four groups, the most with any
shift. Spritz's authors have 5 (their adv_i5_4MiB.cm); the paper refers to other papers.

Slim Fly: routers are put into chains a - x - y - b of neighbours. The hosts of a and those of y send to each
other; so do those of x and b. x is the only common neighbour of a and y, and y is the only one of x and b, so
the minimal paths from a and x share the link x -> y, and those from y and b share y -> x: each direction
carries the traffic of two routers' hosts, any other link carries that of one router (after M. Besta and T.
Hoefler, Slim Fly: A Cost Effective Low-Diameter Network Topology, SC 2014: routers at distance two whose
paths share a link). Chains are found by a random greedy search; routers left over send to one another in a
ring. A Slim Fly has 2q² routers, a number that chains of four do not divide if q is odd: then at least two
are left.

With `pattern=fans`, as in the file of Spritz's authors (adv_all_4MiB.cm), half of the hosts send and the
others receive: for a link x -> y, each host of y receives from another neighbour of x, whose only minimal
path leads over that link. So the link carries as many flows as y has hosts, and each of the senders' routers
has only one of them.

All others are permutations: every host sends to exactly one host and receives from exactly one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tailrace.experiments.workloads.registry import DEFAULT_BYTES, JITTER, SIZE, register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import keys
from tailrace.topology import Host, Topology

_SEARCHES = 16
"""Number of random searches, of which the one with the fewest routers left over is used."""

CHAINS, FANS = PATTERNS = ("chains", "fans")

Chain = tuple[str, str, str, str]


@register("adversarial", "the worst-case permutation for minimal routing, in a Dragonfly or a Slim Fly")
class Adversarial(msgspec.Struct, frozen=True):
    """Every sender sends `size_bytes`."""

    size_bytes: Annotated[int, SIZE] = DEFAULT_BYTES
    shift: Annotated[
        int | None,
        keys.integer("shift", "in a Dragonfly, groups from a sender to its receiver", least=1, absent="1"),
    ] = None
    pattern: Annotated[
        str | None,
        keys.choice(
            "pattern",
            "in a Slim Fly: links with the traffic of two routers, or of single hosts of many routers",
            PATTERNS,
            absent=CHAINS,
        ),
    ] = None
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        for sender, receiver in self._pairs(topology, rng):
            yield Transfer(sender, receiver, self.size_bytes, rng.randint(0, self.jitter_ns))

    def _pairs(self, topology: Topology, rng: random.Random) -> list[tuple[Host, Host]]:
        kind = topology.kind
        given = ("shift", self.shift, "dragonfly"), ("pattern", self.pattern, "slim-fly")
        for name, value, needed in given:
            if value is not None and kind != needed:
                raise PatternError(f"{name}={value} needs a {needed}, found a {kind}")
        if kind == "dragonfly":
            return _shifted(topology, self.shift or 1)
        if kind == "slim-fly":
            return _fans(topology, rng) if self.pattern == FANS else _shared_links(topology, rng)
        raise PatternError(f"the pattern exists for a dragonfly and for a slim-fly, not for a {kind}")


def _shifted(topology: Topology, shift: int) -> list[tuple[Host, Host]]:
    groups: dict[int, list[Host]] = {}
    for switch in topology.switches:
        groups.setdefault(switch.group, []).extend(topology.hosts_of(switch.name))
    if len(groups) < 2:
        raise PatternError("all hosts are in one group")
    if shift >= len(groups):
        raise PatternError(f"shift must be less than {len(groups)}, the number of groups, found {shift}")
    senders = [groups[number] for number in sorted(groups)]
    receivers = [*senders[shift:], *senders[:shift]]
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


def _neighbours(topology: Topology) -> dict[str, set[str]]:
    neighbours_of: dict[str, set[str]] = {switch.name: set() for switch in topology.switches}
    for link in topology.links:
        neighbours_of[link.a].add(link.b)
        neighbours_of[link.b].add(link.a)
    return neighbours_of


def _fans(topology: Topology, rng: random.Random) -> list[tuple[Host, Host]]:
    """Senders and receivers of `pattern=fans`, link by link in random order."""
    neighbours_of = _neighbours(topology)
    group = {switch.name: switch.group for switch in topology.switches}
    free = {name: list(topology.hosts_of(name)) for name in neighbours_of}
    directions = [ends for link in topology.links for ends in ((link.a, link.b), (link.b, link.a))]
    rng.shuffle(directions)
    pairs = []
    for x, y in directions:
        for router in sorted(neighbours_of[x] - {y}):
            alone = neighbours_of[router] & neighbours_of[y] == {x} and group[router] != group[y]
            if alone and free[router] and free[y]:
                pairs.append((free[router].pop(0), free[y].pop(0)))
    return pairs


def chains(topology: Topology, rng: random.Random) -> tuple[list[Chain], list[str]]:
    """Disjoint chains of routers, and the routers in no chain: the best of a few random searches."""
    neighbours_of = _neighbours(topology)
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
