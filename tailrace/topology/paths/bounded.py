# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths of Dragonfly, Slim Fly and trees, and the entropy value (EV) of each (Spritz §III).

A bounded simple path is a loop-free path of bounded length. A local link is within a group, a global link
between groups. A source s chooses up to the first two links of the path to d by an EV = (EV1, EV2), and
default tables (topology.paths.default_routes) choose the rest:

    Dragonfly, to another group     s -EV1, local-> s' -EV2, global-> i      s -EV1, global-> i
    Dragonfly, within the group     s -EV1, local-> d                        s -EV1, local-> s'
    Slim Fly                        s -EV1-> n1 -EV2-> n2
    fat tree, to another pod        s -EV1, up-> a -EV2, up-> c
    fat tree, within the pod        s -EV1, up-> a
    leaf-spine                      s -EV1, up-> a

From i, s', n2, c or a, default tables lead to d. The paper, which is about networks of low diameter, does not
have trees. Here a tree's pod, or the whole leaf-spine, corresponds to a Dragonfly's group; all paths in trees
are minimal, since every path goes up once and down once. A path that reaches d earlier ends there. No switch
occurs twice on a path, whichever minimal next hop the default table of n2 has: so the lists do not depend on
that table (and have the lengths that the paper gives). Paths have at most 3 local and 2 global links in a
Dragonfly, and 4 links in a Slim Fly or a fat tree.

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
from tailrace.topology.kinds import SLIM_FLY, TREES, check_kind
from tailrace.topology.model import Topology
from tailrace.topology.paths.default_routes import DefaultRoutes
from tailrace.topology.paths.segments import PATH_FRAME_BYTES, PathHop, Segment, hops_of
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import max_links_on_path

MINIMAL, NON_MINIMAL = "minimal", "non-minimal"
"""The path categories of Spritz, Table I."""

EV_SLOTS = 256
"""Number of slots that one byte can select."""

MOST_EVS = EV_SLOTS * EV_SLOTS - 1
"""The most EVs of one list; 0 is no EV."""

_LISTS_CACHED = 256


class PathTables(msgspec.Struct, frozen=True):
    """The ECMP tables of one switch: ports in the order of slots.

    first_far, first_near: for the first switch of a path (role ECMP 1 of Spritz), to other groups and within
        the switch's group; the same in a Slim Fly
    second: for the second switch (role ECMP 2)
    """

    first_far: tuple[int, ...]
    first_near: tuple[int, ...]
    second: tuple[int, ...]


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
            SpecError: the topology has no such paths, or a table is too large for an EV.
        """
        check_kind(topology)
        self._topology = topology
        self._has_groups = topology.kind != SLIM_FLY
        self._is_tree = topology.kind in TREES
        self._defaults = DefaultRoutes(topology, down)
        self._group = {switch.name: switch.group for switch in topology.switches}
        self._hops = hops_of(topology, frame_bytes)
        ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in topology.links]
        self._dead = {end for link in ends if not down.isdisjoint(link) for end in link}
        self._tables = self._make_tables()
        self.max_links = sum(max_links_on_path(topology)[0])
        self._heads: dict[tuple[str, bool], tuple[_Head, ...]] = {}
        self._tails: dict[tuple[str, str], _Tail | None] = {}
        self._default_links: dict[tuple[str, str], int | None] = {}
        self._listed = lru_cache(_LISTS_CACHED)(self._list)

    def _make_tables(self) -> dict[str, PathTables]:
        local = {name: _ports(hops, is_local=True) for name, hops in self._hops.items()}
        far = {name: _ports(hops, is_local=False) for name, hops in self._hops.items()}
        tables = {}
        for name, hops in self._hops.items():
            if self._has_groups:
                # in small networks some switches have no global links: no path to another group through them
                onward = tuple(port for port in local[name] if far[hops[port].peer])
                tables[name] = PathTables((*onward, *far[name]), local[name], far[name])
            else:
                ports = tuple(sorted(hops))
                tables[name] = PathTables(ports, ports, ports)
            most = max(len(tables[name].first_far), len(tables[name].first_near))
            if most > EV_SLOTS:
                raise SpecError(
                    f"topology {self._topology.spec}: {name} has {most} ports to choose from,"
                    f" and an EV can select one of {EV_SLOTS} at most"
                )
        return tables

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
        """Whether two switches are in the same group; always False in a Slim Fly."""
        return self._has_groups and self._group[switch] == self._group[leaf]

    def goes_on(self, switch: str, port: int, *, near: bool) -> bool:
        """Whether EV2 chooses a link after this port of the first switch; `near`: to the same group."""
        return not self._has_groups or (not near and self._hops[switch][port].is_local)

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
        paths = []
        for ev, head, tail in self._paths(src, dst):
            links, global_ = len(head.ports) + len(tail.ports), head.global_ + tail.global_
            paths.append((not self._is_minimal(links, global_), head.latency_ps + tail.latency_ps, links, ev))
        paths.sort()
        if most is not None and most < len(paths):
            minimal = sum(not is_longer for is_longer, *_ in paths)
            start, end = (minimal, len(paths)) if most > minimal else (0, minimal)
            rng = random.Random(f"paths {src} {dst} {seed}")
            paths = paths[:start] + sorted(rng.sample(paths[start:end], most - start))
        return [(ev, latency_ps) for _, latency_ps, _, ev in paths]

    def _list(self, src: str, dst: str) -> tuple[BoundedPath, ...]:
        paths = [self._made(ev, head.joined(tail)) for ev, head, tail in self._paths(src, dst)]
        paths.sort(key=lambda path: (path.category != MINIMAL, path.latency_ps, len(path.ports), path.ev))
        return tuple(paths)

    def _is_minimal(self, links: int, global_: int) -> bool:
        """Whether a path is minimal by Table I: in a Dragonfly without a third group; in a Slim Fly with at
        most two links.
        """
        if self._is_tree:
            return True
        return global_ <= 1 if self._has_groups else links <= 2

    def _made(self, ev: int, path: Segment) -> BoundedPath:
        category = MINIMAL if self._is_minimal(len(path.ports), path.global_) else NON_MINIMAL
        return BoundedPath(ev, path.switches, path.ports, path.local, path.global_, path.latency_ps, category)

    def _paths(self, src: str, dst: str) -> Iterator[tuple[int, Segment, Segment]]:
        """All paths, in no order: the EV, the part that it chooses, and the part of default tables."""
        if src == dst:
            return
        for ev, head in self._heads_of(src, near=self.is_near(src, dst)):
            last = head.switches[-1]
            if last != dst and dst in head.switches:
                continue
            if self._dead and not self._dead.isdisjoint(head.sends()):
                continue
            tail = self._tail(last, dst)
            # in a Slim Fly, a head of one link must end at the destination: elsewhere EV2 chooses a second
            # link
            if tail is None or (tail.segment.ports and not self._has_groups and len(head.ports) == 1):
                continue
            if tail.reserved.isdisjoint(head.switches):
                yield ev, head, tail.segment

    def _heads_of(self, src: str, *, near: bool) -> tuple[_Head, ...]:
        if (src, near) not in self._heads:
            self._heads[src, near] = tuple(self._make_heads(src, near=near))
        return self._heads[src, near]

    def _make_heads(self, src: str, *, near: bool) -> Iterator[_Head]:
        tables, hops = self._tables[src], self._hops[src]
        first = tables.first_near if near else tables.first_far
        for ev1, port in enumerate(first):
            head = Segment((src,)).then(hops[port])
            goes_on = self.goes_on(src, port, near=near)
            if not goes_on or not self._has_groups:
                yield _ev(ev1, 0, len(first), 0), head
            if goes_on:
                peer = hops[port].peer
                second = self._tables[peer].second
                for ev2, port2 in enumerate(second):
                    hop = self._hops[peer][port2]
                    if hop.peer != src:
                        yield _ev(ev1, ev2, len(first), len(second)), head.then(hop)

    def _tail(self, switch: str, leaf: str) -> _Tail | None:
        """The path by the default tables; None if it does not arrive."""
        key = (switch, leaf)
        if key not in self._tails:
            path: Segment | None = Segment((switch,))
            while path is not None and path.switches[-1] != leaf:
                here = path.switches[-1]
                port = self._defaults.port(here, leaf)
                path = None if port is None else path.then(self._hops[here][port])
            self._tails[key] = None if path is None else _Tail(path, self._reserved(path, leaf))
        return self._tails[key]

    def _reserved(self, tail: Segment, leaf: str) -> frozenset[str]:
        """The switches on the tail, for any minimal next hop in the first switch's default table."""
        switches = set(tail.switches[1:])
        if not self._has_groups and len(tail.ports) > 1:
            first = tail.switches[0]
            switches.update(self._hops[first][port].peer for port in self._defaults.minimal(first, leaf))
        return frozenset(switches)


def _ev(ev1: int, ev2: int, first: int, second: int) -> int:
    """The EV of two slots, in tables of `first` and `second` slots; `second` is 0 if EV2 is unused."""
    if not ev1 and not ev2:
        if second:
            # less than EV_SLOTS: in a Dragonfly local ports take slots, too, and other networks have fewer
            # ports
            ev2 = second
        elif first < EV_SLOTS:
            ev1 = first
        else:
            ev2 = 1
    return ev1 << 8 | ev2


def _ports(hops: dict[int, PathHop], *, is_local: bool) -> tuple[int, ...]:
    return tuple(sorted(port for port, hop in hops.items() if hop.is_local == is_local))
