# SPDX-License-Identifier: Apache-2.0
"""The path that a packet with any entropy value (EV) takes by the tables of topology.paths.bounded."""

from __future__ import annotations

from tailrace.topology.paths.bounded import BoundedPath, BoundedPaths
from tailrace.topology.paths.segments import Segment


def follow(paths: BoundedPaths, src: str, dst: str, ev: int) -> BoundedPath | None:
    """The path from switch to switch; None if the packet does not arrive.

    Computed as in the switches: the first switch has role ECMP 1. The switch after it has role ECMP 2; in a
    network with groups only if the link between them is local and the destination is in another group. If EV2
    leads back to the previous switch, the default table is used.
    """
    near, hops = paths.is_near(src, dst), paths._hops
    path = Segment((src,))
    while path.switches[-1] != dst:
        here = path.switches[-1]
        if len(path.ports) > len(hops):
            return None  # a loop
        port = _choice(paths, path, dst, ev, near=near)
        if port is None or (here, port) in paths._dead:
            return None
        path = path.then(hops[here][port])
    return paths._made(ev, path) if path.ports else None


def _choice(paths: BoundedPaths, path: Segment, dst: str, ev: int, *, near: bool) -> int | None:
    """The egress port of a packet at the last switch of a partial path."""
    here = path.switches[-1]
    tables, default = paths.ports(here), paths.default_port(here, dst)
    if not path.ports:
        first = tables.first_near if near else tables.first_far
        return first[(ev >> 8) % len(first)] if first else default
    came_from = path.switches[-2]
    # as in the switch, the role depends on the ingress port and the packet's source
    second = came_from == path.switches[0] and paths.goes_on(came_from, path.ports[-1], near=near)
    if not second or not tables.second:
        return default
    port = tables.second[(ev & 0xFF) % len(tables.second)]
    return default if paths._hops[here][port].peer == came_from else port
