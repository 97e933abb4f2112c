# SPDX-License-Identifier: Apache-2.0
"""Bounded simple paths of Dragonfly, Slim Fly and trees, and the entropy value (EV) of each (Spritz §III).

A source chooses up to the first two links of a path, and default tables (topology.paths.default_routes) the
rest:

    Dragonfly, to another group     s -EV1, local-> s' -EV2, global-> i      s -EV1, global-> i
    Dragonfly, within the group     s -EV1, local-> d                        s -EV1, local-> s'
    Slim Fly                        s -EV1-> n1 -EV2-> n2
    fat tree, to another pod        s -EV1, up-> a -EV2, up-> c
    fat tree, within the pod        s -EV1, up-> a
    leaf-spine                      s -EV1, up-> a

and from i, s', n2, c or a default tables lead to d. Trees are not in the paper, which is about networks of
low diameter: a pod, or all of a leaf-spine, takes the place of a Dragonfly's group, and since a path goes up
once and down once, all of them are minimal. A path that comes to d earlier ends there. No switch is on a path
twice, nor would it be if n2 held another of its minimal next hops: so lists do not depend on which it
holds (and have the length that the paper gives). That makes at most 3 local and 2 global links in a
Dragonfly, and 4 links in a Slim Fly or a fat tree.

EV = EV1 << 8 | EV2 is a UDP source port. EV1 modulo the size of its table is a slot of the first switch, EV2
one of the second switch; an EV2 that nobody reads is written as 0. Slots are in the order of ports, in a
Dragonfly local ports before global ones. Since 0 is no source port, the size of a table is added to the part
that reads it where both parts would be 0.

The latency of a path is that of its links between switches, each its propagation and the sending of a full
frame (Spritz, Table I); what all paths of a pair have in common is left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tailrace.spec import SpecError
from tailrace.topology.kinds import SLIM_FLY, TREES, check_kind
from tailrace.topology.model import Topology
from tailrace.topology.paths.default_routes import DefaultRoutes
from tailrace.topology.paths.endpoint_table import endpoint_bytes, max_list_length
from tailrace.topology.paths.segments import PATH_FRAME_BYTES, PathHop, Segment, hops_of
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import max_links_on_path

__all__ = [
    "EV_SLOTS",
    "MINIMAL",
    "MOST_EVS",
    "NON_MINIMAL",
    "PATH_FRAME_BYTES",
    "BoundedPath",
    "BoundedPaths",
    "PathTables",
    "check_kind",
    "endpoint_bytes",
    "max_list_length",
]

MINIMAL, NON_MINIMAL = "minimal", "non-minimal"
"""The path categories of Spritz, Table I."""

EV_SLOTS = 256
"""The slots that one byte can name."""

MOST_EVS = EV_SLOTS * EV_SLOTS - 1
"""The EVs of one list at most: 0 is none."""

_LISTS_KEPT = 256


@dataclass(frozen=True, slots=True)
class PathTables:
    """The ECMP tables of one switch: ports in the order of slots.

    first_far, first_near: role ECMP 1, to other groups and within the own one (in a Slim Fly the same)
    second: role ECMP 2
    """

    first_far: tuple[int, ...]
    first_near: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundedPath:
    """A path between two switches.

    ev: what takes it
    switches: all on it, from source to destination
    ports: by which all but the last one send packets on
    local, global_: links within groups, and between them
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
"""The part of a path that its EV chooses."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """The part of a path that default tables choose, and the switches that no part before it may have."""

    way: Segment
    reserved: frozenset[str]


class BoundedPaths:
    """All bounded simple paths of a network.

    ECMP tables are those of the faultless network for ever: a failed link stays in them, and the sender
    notices (Spritz §IV-C). Where the links in `down` are dead, only default tables lead around them.

    max_links: between switches, of the longest of them
    """

    def __init__(
        self, topology: Topology, down: Down = frozenset(), frame_bytes: int = PATH_FRAME_BYTES
    ) -> None:
        """Makes the tables; paths are looked for when they are asked for.

        Args:
            down: dead links, by (switch, port) of either end.
            frame_bytes: a full frame.

        Raises:
            SpecError: the topology has no such paths, or a table is larger than EV can name.
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
        self._listed = lru_cache(_LISTS_KEPT)(self._list)

    def _make_tables(self) -> dict[str, PathTables]:
        local = {name: _ports(hops, is_local=True) for name, hops in self._hops.items()}
        far = {name: _ports(hops, is_local=False) for name, hops in self._hops.items()}
        tables = {}
        for name, hops in self._hops.items():
            if self._has_groups:
                # a switch without global links, as there are in small networks, is no way to another group
                onward = tuple(port for port in local[name] if far[hops[port].peer])
                tables[name] = PathTables((*onward, *far[name]), local[name], far[name])
            else:
                ports = tuple(sorted(hops))
                tables[name] = PathTables(ports, ports, ports)
            most = max(len(tables[name].first_far), len(tables[name].first_near))
            if most > EV_SLOTS:
                raise SpecError(
                    f"topology {self._topology.spec}: {name} has {most} ports to choose from,"
                    f" and an EV names {EV_SLOTS} at most"
                )
        return tables

    @property
    def topology(self) -> Topology:
        return self._topology

    def ports(self, switch: str) -> PathTables:
        """The ECMP tables of a switch."""
        return self._tables[switch]

    def default_port(self, switch: str, leaf: str) -> int | None:
        """The static minimal next hop to another switch; None where it cannot be reached."""
        return self._defaults.port(switch, leaf)

    def default_links(self, switch: str, leaf: str) -> int | None:
        """The links of the path that the default tables take; None where they do not arrive."""
        on_the_way = []
        here = switch
        while here != leaf and (here, leaf) not in self._default_links:
            on_the_way.append(here)
            port = self._defaults.port(here, leaf)
            if port is None:
                self._default_links[here, leaf] = None
            else:
                here = self._hops[here][port].peer
        links = 0 if here == leaf else self._default_links[here, leaf]
        for before in reversed(on_the_way):
            links = None if links is None else links + 1
            self._default_links[before, leaf] = links
        return links

    def is_near(self, switch: str, leaf: str) -> bool:
        """Whether the rules of a group hold between two switches."""
        return self._has_groups and self._group[switch] == self._group[leaf]

    def goes_on(self, switch: str, port: int, *, near: bool) -> bool:
        """Whether the switch to which the first one sends by a port has role ECMP 2."""
        return not self._has_groups or (not near and self._hops[switch][port].is_local)

    def between(self, src: str, dst: str) -> tuple[BoundedPath, ...]:
        """All paths between two switches: minimal ones first, then by latency, links and EV.

        Empty for a switch and itself.
        """
        return self._listed(src, dst)

    def entries(self, src: str, dst: str, most: int | None = None, seed: int = 0) -> list[tuple[int, int]]:
        """(EV, latency in ps) of the same list, or of part of it in its order; quicker, and nothing is kept.

        Args:
            most: paths, 1 or more; None: all. Minimal paths come before others. Those of the category that
                does not fit as a whole are drawn, each as likely as any other, by a generator of the pair's
                own: were it the first ones, all sources would leave the same links unused.
            seed: of all generators.
        """
        paths = []
        for ev, head, tail in self._paths(src, dst):
            links, global_ = len(head.ports) + len(tail.ports), head.global_ + tail.global_
            paths.append((not self._is_minimal(links, global_), head.latency_ps + tail.latency_ps, links, ev))
        paths.sort()
        if most is not None and most < len(paths):
            minimal = sum(not is_longer for is_longer, *_ in paths)
            kept, end = (minimal, len(paths)) if most > minimal else (0, minimal)
            rng = random.Random(f"paths {src} {dst} {seed}")
            paths = paths[:kept] + sorted(rng.sample(paths[kept:end], most - kept))
        return [(ev, latency_ps) for _, latency_ps, _, ev in paths]

    def follow(self, src: str, dst: str, ev: int) -> BoundedPath | None:
        """The path that any EV takes from switch to switch; None where it does not arrive.

        As the switches do it: the first one has role ECMP 1; ECMP 2 has whoever gets the packet straight from
        the source's switch, where there are groups over a local link and on its way to another group. Where
        EV2 leads back to where the packet came from, the default table takes over.
        """
        near = self.is_near(src, dst)
        path = Segment((src,))
        while path.switches[-1] != dst:
            here = path.switches[-1]
            if len(path.ports) > len(self._hops):
                return None  # it loops
            port = self._choice(path, dst, ev, near=near)
            if port is None or (here, port) in self._dead:
                return None
            path = path.then(self._hops[here][port])
        return self._made(ev, path) if path.ports else None

    def _choice(self, path: Segment, dst: str, ev: int, *, near: bool) -> int | None:
        """The port by which the last switch of a way sends a packet on."""
        here = path.switches[-1]
        tables, default = self._tables[here], self._defaults.port(here, dst)
        if not path.ports:
            first = tables.first_near if near else tables.first_far
            return first[(ev >> 8) % len(first)] if first else default
        came_from = path.switches[-2]
        # as in the switch, it is the port and the packet's source that make the role
        second = came_from == path.switches[0] and self.goes_on(came_from, path.ports[-1], near=near)
        if not second or not tables.second:
            return default
        port = tables.second[(ev & 0xFF) % len(tables.second)]
        return default if self._hops[here][port].peer == came_from else port

    def _list(self, src: str, dst: str) -> tuple[BoundedPath, ...]:
        paths = [self._made(ev, head.joined(tail)) for ev, head, tail in self._paths(src, dst)]
        paths.sort(key=lambda path: (path.category != MINIMAL, path.latency_ps, len(path.ports), path.ev))
        return tuple(paths)

    def _is_minimal(self, links: int, global_: int) -> bool:
        """By Table I: in a Dragonfly no third group; in a Slim Fly at most two links."""
        if self._is_tree:
            return True
        return global_ <= 1 if self._has_groups else links <= 2

    def _made(self, ev: int, path: Segment) -> BoundedPath:
        category = MINIMAL if self._is_minimal(len(path.ports), path.global_) else NON_MINIMAL
        return BoundedPath(ev, path.switches, path.ports, path.local, path.global_, path.latency_ps, category)

    def _paths(self, src: str, dst: str) -> Iterator[tuple[int, Segment, Segment]]:
        """EV, what it chooses, and what default tables do, of all paths, in no order."""
        if src == dst:
            return
        for ev, head in self._heads_of(src, near=self.is_near(src, dst)):
            last = head.switches[-1]
            if last != dst and dst in head.switches:
                continue
            if self._dead and not self._dead.isdisjoint(head.sends()):
                continue
            tail = self._tail(last, dst)
            # a Slim Fly's heads of one link are for neighbours only: from others EV2 goes on
            if tail is None or (tail.way.ports and not self._has_groups and len(head.ports) == 1):
                continue
            if tail.reserved.isdisjoint(head.switches):
                yield ev, head, tail.way

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
        """The way by the default tables; None where it does not arrive."""
        key = (switch, leaf)
        if key not in self._tails:
            path: Segment | None = Segment((switch,))
            while path is not None and path.switches[-1] != leaf:
                here = path.switches[-1]
                port = self._defaults.port(here, leaf)
                path = None if port is None else path.then(self._hops[here][port])
            self._tails[key] = None if path is None else _Tail(path, self._reserved(path, leaf))
        return self._tails[key]

    def _reserved(self, way: Segment, leaf: str) -> frozenset[str]:
        """The switches that are on a minimal way, whichever of its next hops the first one holds."""
        switches = set(way.switches[1:])
        if not self._has_groups and len(way.ports) > 1:
            first = way.switches[0]
            switches.update(self._hops[first][port].peer for port in self._defaults.minimal(first, leaf))
        return frozenset(switches)


def _ev(ev1: int, ev2: int, first: int, second: int) -> int:
    """The EV of two slots of tables of so many; `second` is 0 where nobody reads EV2."""
    if not ev1 and not ev2:
        if second:
            # never EV_SLOTS: in a Dragonfly there are local ports beside these, and the others have fewer
            ev2 = second
        elif first < EV_SLOTS:
            ev1 = first
        else:
            ev2 = 1
    return ev1 << 8 | ev2


def _ports(hops: dict[int, PathHop], *, is_local: bool) -> tuple[int, ...]:
    return tuple(sorted(port for port, hop in hops.items() if hop.is_local == is_local))
