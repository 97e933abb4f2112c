# SPDX-License-Identifier: Apache-2.0
"""Times and amounts of data that follow from a topology, computed with integers only.

All are derived from the links' rates and delays, so they scale with the topology.

    base RTT      the idle RTT on the longest of the shortest paths: twice the propagation delays and switch
                  latencies, and the time to send a full frame for the host and every switch; the sending
                  time of the acknowledgement is ignored
    BDP           base RTT times the rate of the fastest host link
    longest RTT   the idle RTT of a full frame on the longest bounded simple path (topology.paths.bounded),
                  and of its ACK on the longest minimal path: propagation of all links, sending by hosts and
                  switches, latency of switches
    least delay   of a switch, for each number of links n: the least delay of all shortest paths of n links
                  from the switch to a switch with hosts. The delay is the sum of the links' propagation
                  delays, and of the latency of the switch at the end of each link
    longest BDP   longest RTT times the rate of the fastest host link, in whole frames. With the links of
                  Spritz, Table II, this gives 88 frames in its Dragonfly and 92 in its Slim Fly, as in the
                  paper, which has no formula; with the ACK on the longest path it would be 107 and 116
"""

from __future__ import annotations

from tailrace.spec.constants import NS_BITS, PS_BITS, PS_PER_NS
from tailrace.topology.model import Topology
from tailrace.topology.paths.segments import link_ps
from tailrace.topology.paths.shapes import Longest, shape_of
from tailrace.topology.paths.shortest import max_switches_on_path

FRAME_OVERHEAD_BYTES = 100
"""Headers of a packet, including those that Tailrace adds."""

FULL_FRAME_BYTES = 1500 + FRAME_OVERHEAD_BYTES
"""A frame with Ethernet's largest payload: used if the size of packets is not known."""

ACK_BYTES = 64
"""Size of an ACK: the headers of Spritz, Table II."""


def full_frame_bytes(mtu_bytes: int | None) -> int:
    """Size on a link of a full packet with this payload; None: the payload is not known."""
    return FULL_FRAME_BYTES if mtu_bytes is None else mtu_bytes + FRAME_OVERHEAD_BYTES


def sending_ns(size_bytes: int, rate_bps: int) -> int:
    """The time in ns that a link takes to send these bytes, rounded up."""
    return -(-size_bytes * NS_BITS // rate_bps)  # bytes * NS_BITS / (bits/s) is a time in ns


def slowest_bps(topology: Topology) -> int:
    """The lowest rate of any link, of hosts or of switches."""
    return min(end.rate_bps for ends in (topology.hosts, topology.links) for end in ends)


def fabric_rate_bps(topology: Topology) -> int:
    """The highest rate of a link between switches."""
    return max((link.rate_bps for link in topology.links), default=1)


def link_delay_ns(topology: Topology) -> int:
    """The longest delay of a link between switches."""
    return max((link.delay_ns for link in topology.links), default=0)


def in_flight_bytes(topology: Topology) -> int:
    """The most bytes in flight on a link between switches, rounded up."""
    return -(-link_delay_ns(topology) * fabric_rate_bps(topology) // NS_BITS)  # ns * bits/s / NS_BITS: bytes


def propagation_ns(topology: Topology, switches: int) -> int:
    """The largest one-way delay between two hosts with this number of switches between them: propagation, and
    latency of switches.
    """
    hosts = 2 * max(host.delay_ns for host in topology.hosts)
    return hosts + (switches - 1) * link_delay_ns(topology) + switches * topology.latency_ns


def base_rtt_ns(topology: Topology, frame_bytes: int) -> int:
    """The base RTT for frames of this size: see the docstring of this module."""
    switches = max_switches_on_path(topology)
    sending = (switches + 1) * sending_ns(frame_bytes, slowest_bps(topology))
    return 2 * propagation_ns(topology, switches) + sending


def least_delays_ns(topology: Topology) -> dict[str, dict[int, int]]:
    """The least delays by switch and number of links (from 1): see the docstring of this module."""
    delays: dict[tuple[str, str], int] = {}
    for link in topology.links:
        for pair in ((link.a, link.b), (link.b, link.a)):
            delay_ns = link.delay_ns + topology.latency_ns
            delays[pair] = min(delay_ns, delays.get(pair, delay_ns))
    neighbours: dict[str, list[tuple[str, int]]] = {switch.name: [] for switch in topology.switches}
    for (a, b), delay_ns in delays.items():
        neighbours[a].append((b, delay_ns))
    least: dict[str, dict[int, int]] = {name: {} for name in neighbours}
    for leaf in topology.leaves:
        links, seen, ring = 0, {leaf}, {leaf: 0}
        while ring:
            links += 1
            farther: dict[str, int] = {}
            for name, so_far_ns in ring.items():
                for peer, delay_ns in neighbours[name]:
                    if peer not in seen:
                        total_ns = so_far_ns + delay_ns
                        farther[peer] = min(total_ns, farther.get(peer, total_ns))
            for name, total_ns in farther.items():
                least[name][links] = min(total_ns, least[name].get(links, total_ns))
            seen.update(farther)
            ring = farther
    return least


def bdp_bytes(topology: Topology, frame_bytes: int) -> int:
    """The BDP for frames of this size: see the docstring of this module."""
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    return -(-fastest_bps * base_rtt_ns(topology, frame_bytes) // NS_BITS)


def _one_way_ps(topology: Topology, path: Longest, size_bytes: int) -> int:
    """The time of a packet from host to host on a path whose links all have the lowest rate."""
    rate_bps = slowest_bps(topology)
    host_ns = max(host.delay_ns for host in topology.hosts)
    return (
        path.delay_ns * PS_PER_NS
        + path.links * link_ps(0, rate_bps, size_bytes)
        + 2 * link_ps(host_ns, rate_bps, size_bytes)
        + (path.links + 1) * topology.latency_ns * PS_PER_NS
    )


def max_rtt_ns(topology: Topology, frame_bytes: int) -> int:
    """The longest RTT for frames of this size, rounded up: see the docstring of this module."""
    shape = shape_of(topology)
    data_ps = _one_way_ps(topology, shape.longest, frame_bytes)
    return -(-(data_ps + _one_way_ps(topology, shape.minimal, ACK_BYTES)) // PS_PER_NS)


def max_bdp_bytes(topology: Topology, frame_bytes: int) -> int:
    """The longest BDP for frames of this size, rounded up to whole frames: see the module's docstring."""
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    rtt_ps = max_rtt_ns(topology, frame_bytes) * PS_PER_NS
    return -(-fastest_bps * rtt_ps // (PS_BITS * frame_bytes)) * frame_bytes
