# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths of any network, and the entropy value (EV) of each (Spritz §III).

A bounded simple path is a loop-free path of bounded length. A local link is within a group, a global link
between groups. A source s chooses up to the first two links of the path to d by an EV = (EV1, EV2), and
default tables (topology.paths.default_routes) choose the rest:

    Dragonfly, to another group     s -EV1, local-> s' -EV2, global-> i      s -EV1, global-> i
    Dragonfly, within the group     s -EV1, local-> d                        s -EV1, local-> s'
    Slim Fly, any other graph       s -EV1-> n1 -EV2-> n2
    tiers, two or more links up     s -EV1, up-> a -EV2, up-> c
    tiers, one link up              s -EV1, up-> a

From i, s', n2, c or a, default tables lead to d. topology.paths.shapes says which of these a network has, the
bounds of its paths, and which of them are minimal. The paper is about the first three, of low diameter. With
tiers, the switches that a leaf reaches by one link up and one down correspond to a Dragonfly's group; all
paths are minimal, since every path goes up once and down once. A path that reaches d earlier ends there. No
switch occurs twice on a path, whichever shortest path default tables choose from n2 on: so the lists do not
depend on these tables (and have the lengths that the paper gives).

EV = EV1 << 8 | EV2 is a UDP source port. A slot is an index in a switch's ECMP table, which lists ports in
order, in a Dragonfly local ports before global ones. EV1 modulo the size of the first switch's table is a
slot of that table, and EV2 likewise of the second switch's; an unused EV2 is 0. Since 0 is no valid source
port, an EV of 0 is avoided: the size of a table is added to the part that selects from that table.

The latency of a path is the sum over its links between switches of propagation delay and the time to send a
full frame (Spritz, Table I); hosts' links, common to all paths of a pair, are not counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.topology.model import Topology
from tailrace.topology.paths.default_routes import DefaultRoutes
from tailrace.topology.paths.segments import PATH_FRAME_BYTES, Segment, hops_of
from tailrace.topology.paths.shapes import PathTables, shape_of
from tailrace.topology.paths.shortest import Down

MINIMAL, NON_MINIMAL = "minimal", "non-minimal"
"""The path categories of Spritz, Table I."""

EV_SLOTS = 256
"""Number of slots that one byte can select."""

MOST_EVS = EV_SLOTS * EV_SLOTS - 1
"""The most EVs of one list; 0 is no EV."""

MOST_CHOICES = 2_000_000
"""The most EVs of all sources together: the links that each chooses are kept."""

_LISTS_CACHED = 256
_TAILS_CACHED = 1 << 18


class BoundedPath(msgspec.Struct, frozen=True):
    """A path between two switches.

    ev: the entropy value that selects it
    switches: its switches, from source to destination
    ports: the egress ports of all switches but the last
    local, global_: number of links within groups, and between them
    latency_ps: see the docstring of this module
    category: MINIMAL or NON_MINIMAL
    """

    ev: int
    switches: tuple[str, ...]
    ports: tuple[int, ...]
    local: int
    global_: int
    latency_ps: int
    category: str


_Head = tuple[int, Segment]
"""An EV, and the part of a path that it chooses."""


class _Tail(msgspec.Struct, frozen=True):
    """The part of a path that default tables choose, and the switches that must not occur before it."""

    segment: Segment
    reserved: frozenset[str]


class BoundedPaths:
    """All bounded simple paths of a network.

    ECMP tables are always those of the faultless network: failed links stay in them, and senders detect the
    failures (Spritz §IV-C). Only default tables lead around the dead links in `down`.

    max_links: links between switches on the longest path
    most_evs: the most EVs of a pair of switches
    """

    def __init__(
        self, topology: Topology, down: Down = frozenset(), frame_bytes: int = PATH_FRAME_BYTES
    ) -> None:
        """Makes the tables; paths are computed on demand.

        Args:
            topology: the network.
            down: dead links, by (switch, port) of either end.
            frame_bytes: size of a full frame.

        Raises:
            SpecError: a table is too large for an EV, or there are more than MOST_CHOICES.
        """
        self._topology = topology
        self._shape = shape_of(topology)
        self._tables = self._shape.tables
        self._defaults = DefaultRoutes(topology, down)
        self._hops = hops_of(topology, frame_bytes)
        ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in topology.links]
        self._dead = {end for link in ends if not down.isdisjoint(link) for end in link}
        self.max_links = self._shape.longest.links
        self.most_evs = self._check_tables()
        self._heads: dict[tuple[str, bool], tuple[_Head, ...]] = {}
        self._default_links: dict[tuple[str, str], int | None] = {}
        self._tail = lru_cache(_TAILS_CACHED)(self._make_tail)
        self._listed = lru_cache(_LISTS_CACHED)(self._list)

    def _check_tables(self) -> int:
        """The most EVs of a pair of switches; raises SpecError for tables that are too large."""
        title = f"topology {self._topology.spec}"
        # where both bytes select from full tables, no other EV stands for 0
        second = EV_SLOTS - any(table.onward for table in self._tables.values())
        for name, table in self._tables.items():
            for ports, slots in (
                (table.first_far, EV_SLOTS),
                (table.first_near, EV_SLOTS),
                (table.second, second),
            ):
                if len(ports) > slots:
                    raise SpecError(
                        f"{title}: {name} has {len(ports)} ports to choose from,"
                        f" and an EV can select one of {slots} at most"
                    )
        evs = [self._shape.evs(leaf) for leaf in self._topology.leaves]
        refuse_above(title, "EVs of paths", sum(map(sum, evs)), MOST_CHOICES)
        return max(map(max, evs))

    @property
    def topology(self) -> Topology:
        return self._topology

    def ports(self, switch: str) -> PathTables:
        """The ECMP tables of a switch."""
        return self._tables[switch]

    def default_port(self, switch: str, leaf: str) -> int | None:
        """The static minimal next hop to another switch; None if it is unreachable."""
        return self._defaults.port(switch, leaf)

    def default_links(self, switch: str, leaf: str) -> int | None:
        """The number of links of the path by default tables; None if it does not reach the leaf."""
        passed = []
        here = switch
        while here != leaf and (here, leaf) not in self._default_links:
            passed.append(here)
            port = self._defaults.port(here, leaf)
            if port is None:
                self._default_links[here, leaf] = None
            else:
                here = self._hops[here][port].peer
        links = 0 if here == leaf else self._default_links[here, leaf]
        for before in reversed(passed):
            links = None if links is None else links + 1
            self._default_links[before, leaf] = links
        return links

    def is_near(self, switch: str, leaf: str) -> bool:
        """Whether the first switch has other links to choose from than to far leaves (Shape.is_near)."""
        return self._shape.is_near(switch, leaf)

    def goes_on(self, switch: str, port: int, *, near: bool) -> bool:
        """Whether EV2 chooses a link after this port of the first switch; `near`: the destination is near."""
        return not near and port in self._tables[switch].onward

    def between(self, src: str, dst: str) -> tuple[BoundedPath, ...]:
        """All paths between two switches: minimal ones first, then in order of latency, links and EV.

        Empty if the switches are the same.
        """
        return self._listed(src, dst)

    def entries(self, src: str, dst: str, most: int | None = None, seed: int = 0) -> list[tuple[int, int]]:
        """(EV, latency in ps) of all or some paths of `between`, in the same order; faster, but not cached.

        Args:
            src, dst: switches.
            most: the most paths, at least 1; None: all. Minimal paths are preferred. Of the category that
                does not fit completely, paths are drawn uniformly, with a random generator per pair of
                switches: if the first ones were taken, all sources would leave the same links unused.
            seed: seed of the random generators.
        """
        paths = sorted(
            (not minimal, head.latency_ps + tail.latency_ps, len(head.ports) + len(tail.ports), ev)
            for ev, head, tail, minimal in self._paths(src, dst)
        )
        if most is not None and most < len(paths):
            minimal = sum(not is_longer for is_longer, *_ in paths)
            start, end = (minimal, len(paths)) if most > minimal else (0, minimal)
            rng = random.Random(f"paths {src} {dst} {seed}")
            paths = paths[:start] + sorted(rng.sample(paths[start:end], most - start))
        return [(ev, latency_ps) for _, latency_ps, _, ev in paths]

    def _list(self, src: str, dst: str) -> tuple[BoundedPath, ...]:
        paths = [_made(ev, head.joined(tail), minimal=best) for ev, head, tail, best in self._paths(src, dst)]
        paths.sort(key=lambda path: (path.category != MINIMAL, path.latency_ps, len(path.ports), path.ev))
        return tuple(paths)

    def _paths(self, src: str, dst: str) -> Iterator[tuple[int, Segment, Segment, bool]]:
        """All paths, in no order: the EV, the part that it chooses, the part of default tables, and whether
        the path is minimal.
        """
        if src == dst:
            return
        near = self.is_near(src, dst)
        most_links, most_global = self._shape.most_minimal(src, dst)
        for ev, head in self._heads_of(src, near=near):
            last = head.switches[-1]
            # if EV2 chooses a second link, a head of one link must end at the destination
            is_short = len(head.ports) == 1 and self.goes_on(src, head.ports[0], near=near)
            if last != dst and (is_short or dst in head.switches):
                continue
            if self._dead and not self._dead.isdisjoint(head.sends()):
                continue
            tail = self._tail(last, dst)
            if tail is None:
                continue
            links, global_ = len(head.ports) + len(tail.segment.ports), head.global_ + tail.segment.global_
            minimal = links <= most_links and global_ <= most_global
            if (minimal or self._shape.detours) and tail.reserved.isdisjoint(head.switches):
                yield ev, head, tail.segment, minimal

    def _heads_of(self, src: str, *, near: bool) -> tuple[_Head, ...]:
        if (src, near) not in self._heads:
            self._heads[src, near] = tuple(self._make_heads(src, near=near))
        return self._heads[src, near]

    def _make_heads(self, src: str, *, near: bool) -> Iterator[_Head]:
        tables, hops = self._tables[src], self._hops[src]
        first = tables.first_near if near else tables.first_far
        for ev1, port in enumerate(first):
            head = Segment((src,)).then(hops[port])
            yield _ev(ev1, 0, len(first), 0), head
            if self.goes_on(src, port, near=near):
                peer = hops[port].peer
                second = self._tables[peer].second
                for ev2, port2 in enumerate(second):
                    hop = self._hops[peer][port2]
                    if hop.peer != src:
                        yield _ev(ev1, ev2, len(first), len(second)), head.then(hop)

    def _make_tail(self, switch: str, leaf: str) -> _Tail | None:
        """The path by the default tables; None if it does not arrive."""
        path = Segment((switch,))
        while path.switches[-1] != leaf:
            here = path.switches[-1]
            port = self._defaults.port(here, leaf)
            if port is None:
                return None
            path = path.then(self._hops[here][port])
        return _Tail(path, self._reserved(switch, leaf))

    def _reserved(self, switch: str, leaf: str) -> frozenset[str]:
        """The switches, except the first one, on all paths that default tables might have chosen."""
        if switch == leaf or not self._shape.detours:
            return frozenset()  # shortest paths have no loops
        switches, waiting = {leaf}, [switch]
        while waiting:
            name = waiting.pop()
            for port in self._defaults.minimal(name, leaf):
                peer = self._hops[name][port].peer
                if peer not in switches:
                    switches.add(peer)
                    waiting.append(peer)
        return frozenset(switches)


def _made(ev: int, path: Segment, *, minimal: bool) -> BoundedPath:
    category = MINIMAL if minimal else NON_MINIMAL
    return BoundedPath(ev, path.switches, path.ports, path.local, path.global_, path.latency_ps, category)


def _ev(ev1: int, ev2: int, first: int, second: int) -> int:
    """The EV of two slots, in tables of `first` and `second` slots; `second` is 0 if EV2 is unused."""
    if not ev1 and not ev2:
        if second:
            ev2 = second  # less than EV_SLOTS (_check_tables)
        elif first < EV_SLOTS:
            ev1 = first
        else:
            ev2 = 1
    return ev1 << 8 | ev2
