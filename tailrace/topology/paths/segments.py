# SPDX-License-Identifier: Apache-2.0
"""Segments of paths, with numbers of local links (within a group) and global links (between groups), and
latency, as in Spritz.

The latency of a segment is the sum over its links of propagation delay and the time to send a full frame
(Spritz, Table I); hosts' links, switches and queues are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tailrace.spec.constants import PS_BITS, PS_PER_NS
from tailrace.topology.model import Topology

PATH_FRAME_BYTES = 4160
"""A full frame of Spritz, Table II: 64 bytes of headers and 4096 of payload."""


class PathHop(msgspec.Struct, frozen=True):
    """A port of a switch that leads to another switch, `peer`; `is_local`: both are in the same group."""

    port: int
    peer: str
    is_local: bool
    latency_ps: int


class Segment(msgspec.Struct, frozen=True):
    """A part of a path: its switches, and their egress ports in the same order; the last switch has none."""

    switches: tuple[str, ...]
    ports: tuple[int, ...] = ()
    local: int = 0
    global_: int = 0
    latency_ps: int = 0

    def sends(self) -> Iterator[tuple[str, int]]:
        """The (switch, egress port) pairs of the segment."""
        return zip(self.switches, self.ports, strict=False)

    def then(self, hop: PathHop) -> Segment:
        """The segment extended by one link."""
        return Segment(
            (*self.switches, hop.peer),
            (*self.ports, hop.port),
            self.local + hop.is_local,
            self.global_ + (not hop.is_local),
            self.latency_ps + hop.latency_ps,
        )

    def joined(self, rest: Segment) -> Segment:
        """The segment extended by another one, which begins where this one ends."""
        return Segment(
            (*self.switches, *rest.switches[1:]),
            (*self.ports, *rest.ports),
            self.local + rest.local,
            self.global_ + rest.global_,
            self.latency_ps + rest.latency_ps,
        )


def link_ps(delay_ns: int, rate_bps: int, frame_bytes: int) -> int:
    """The latency of a link: its propagation delay and the time to send a frame, rounded up to ps."""
    # bytes * PS_BITS / (bits/s) is a time in ps
    return delay_ns * PS_PER_NS - (-frame_bytes * PS_BITS // rate_bps)


def hops_of(topology: Topology, frame_bytes: int) -> dict[str, dict[int, PathHop]]:
    """The hops from each switch to other switches, by switch and port."""
    group = {switch.name: switch.group for switch in topology.switches}
    hops: dict[str, dict[int, PathHop]] = {name: {} for name in group}
    for link in topology.links:
        is_local = group[link.a] == group[link.b]
        latency_ps = link_ps(link.delay_ns, link.rate_bps, frame_bytes)
        hops[link.a][link.a_port] = PathHop(link.a_port, link.b, is_local, latency_ps)
        hops[link.b][link.b_port] = PathHop(link.b_port, link.a, is_local, latency_ps)
    return hops
