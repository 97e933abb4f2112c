# SPDX-License-Identifier: Apache-2.0
"""The path that a packet with any entropy value (EV) takes by the tables of topology.paths.bounded."""

from __future__ import annotations

from tailrace.topology.paths.bounded import BoundedPath, BoundedPaths, _made
from tailrace.topology.paths.segments import Segment


def follow(paths: BoundedPaths, src: str, dst: str, ev: int) -> BoundedPath | None:
    """The path from switch to switch; None if the packet does not arrive.

    Computed as in the switches: the first switch has role ECMP 1. The switch after it has role ECMP 2, unless the
    link between them leads to another group of a Dragonfly, or nothing is above the switch in its tier. If EV2
    leads back to the previous switch, or the destination is near, the default table is used.
    """
    hops = paths._hops
    path = Segment((src,))
    while path.switches[-1] != dst:
        here = path.switches[-1]
        if len(path.ports) > len(hops):
            return None  # a loop
        port = _choice(paths, path, dst, ev)
        if port is None or (here, port) in paths._dead:
            return None
        path = path.then(hops[here][port])
    if not path.ports:
        return None
    links, global_ = paths._shape.most_minimal(src, dst)
    return _made(ev, path, minimal=len(path.ports) <= links and path.global_ <= global_)


def _choice(paths: BoundedPaths, path: Segment, dst: str, ev: int) -> int | None:
    """The egress port of a packet at the last switch of a partial path."""
    here = path.switches[-1]
    near = paths.is_near(here, dst)
    tables, default = paths.ports(here), paths.default_port(here, dst)
    if not path.ports:
        first = tables.first_near if near else tables.first_far
        return first[(ev >> 8) % len(first)] if first else default
    came_from, sent = path.switches[-2], path.ports[-1]
    # as in the switch, the role depends on the ingress port and the packet's source
    second = came_from == path.switches[0] and paths.goes_on(came_from, sent, near=False)
    if not second or near or not tables.second:
        return default
    port = tables.second[(ev & 0xFF) % len(tables.second)]
    return default if port == paths.topology.ports_of(came_from)[sent].port else port
