# SPDX-License-Identifier: Apache-2.0
"""Times and amounts that follow from a topology: pure arithmetic on integers.

All come from the links' rates and delays, so they scale with the topology.

    base RTT      an idle round trip on the longest of the shortest paths: twice propagation and latency of
                  switches, and a full frame sent by the host and by every switch; on the way back a small
                  frame, whose sending time is left out
    BDP           base RTT times the fastest host link
    longest RTT   a full frame on the longest bounded path and its ACK on the longest minimal one, without
                  queueing: propagation of all links, sending by hosts and switches, latency of switches
    least delay   of all shortest paths from a switch to switches with hosts, by the number of links between
                  them: propagation, and latency of the switches behind each link
    longest BDP   what the fastest host link carries in that time, in whole frames. With the links of Table
                  II of Spritz that is 88 frames in its Dragonfly and 92 in its Slim Fly, as it says; the
                  paper has no formula, and with the ACK on the longest path it would be 107 and 116
"""

from __future__ import annotations

from collections import Counter

from tailrace.spec.constants import NS_BITS, PS_BITS, PS_PER_NS
from tailrace.topology.kinds import SLIM_FLY, TREES, check_kind
from tailrace.topology.model import Topology
from tailrace.topology.paths.segments import link_ps
from tailrace.topology.paths.shortest import max_switches_on_path

FRAME_OVERHEAD_BYTES = 100
"""Headers of a packet, and all that Tailrace adds to it."""

FULL_FRAME_BYTES = 1500 + FRAME_OVERHEAD_BYTES
"""With the payload that Ethernet allows: for those who do not know how large packets are."""

ACK_BYTES = 64
"""The headers of Spritz, Table II."""

_Links = tuple[int, int]
"""Local and global links of a path."""


def full_frame_bytes(mtu_bytes: int | None) -> int:
    """A full packet of such a payload on a link; None: nobody knows the payload."""
    return FULL_FRAME_BYTES if mtu_bytes is None else mtu_bytes + FRAME_OVERHEAD_BYTES


def sending_ns(size_bytes: int, rate_bps: int) -> int:
    """How long a link takes to send some bytes, rounded up."""
    return -(-size_bytes * NS_BITS // rate_bps)


def slowest_bps(topology: Topology) -> int:
    """The lowest rate of any link, of hosts or of switches."""
    return min(end.rate_bps for ends in (topology.hosts, topology.links) for end in ends)


def fabric_rate_bps(topology: Topology) -> int:
    """The highest rate between switches."""
    return max((link.rate_bps for link in topology.links), default=1)


def link_delay_ns(topology: Topology) -> int:
    """The longest delay between switches."""
    return max((link.delay_ns for link in topology.links), default=0)


def in_flight_bytes(topology: Topology) -> int:
    """What is under way on such a link, rounded up."""
    return -(-link_delay_ns(topology) * fabric_rate_bps(topology) // NS_BITS)


def propagation_ns(topology: Topology, switches: int) -> int:
    """The delay between two hosts with so many switches between them, at most: propagation, and latency of
    switches.
    """
    hosts = 2 * max(host.delay_ns for host in topology.hosts)
    return hosts + (switches - 1) * link_delay_ns(topology) + switches * topology.latency_ns


def base_rtt_ns(topology: Topology, frame_bytes: int) -> int:
    """The round trip of a frame and its acknowledgement on the longest path, without queueing."""
    switches = max_switches_on_path(topology)
    sending = (switches + 1) * sending_ns(frame_bytes, slowest_bps(topology))
    return 2 * propagation_ns(topology, switches) + sending


def least_delays_ns(topology: Topology) -> dict[str, dict[int, int]]:
    """By switch and number of links, 1 or more: see above."""
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
    """What the fastest host link carries in one base RTT of such frames."""
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    return -(-fastest_bps * base_rtt_ns(topology, frame_bytes) // NS_BITS)


def max_links_on_path(topology: Topology) -> tuple[_Links, _Links]:
    """Local and global links of the longest bounded path, and of the longest minimal one.

    Raises:
        SpecError: the topology has no such paths.
    """
    check_kind(topology)
    if topology.kind in TREES:
        # up and down again: by a switch of the own pod, or by two and one above them
        links = max_switches_on_path(topology) - 1
        up_and_down = (min(2, links), max(0, links - 2))
        return up_and_down, up_and_down
    if topology.kind == SLIM_FLY:
        local_ns, global_ns = _delays_ns(topology)
        return ((0, 4), (0, 2)) if global_ns >= local_ns else ((4, 0), (2, 0))
    members = Counter(switch.group for switch in topology.switches)
    within = int(max(members.values()) > 1)
    if len(members) == 1:
        return (min(2, len(topology.switches) - 1), 0), (within, 0)
    minimal = (2 * within, 1)
    return ((3 * within, 2) if len(members) > 2 else minimal), minimal


def _delays_ns(topology: Topology) -> tuple[int, int]:
    """The longest propagation of a local link and of a global one; 0 where there is none."""
    longest = {True: 0, False: 0}
    group = {switch.name: switch.group for switch in topology.switches}
    for link in topology.links:
        is_local = group[link.a] == group[link.b]
        longest[is_local] = max(longest[is_local], link.delay_ns)
    return longest[True], longest[False]


def _one_way_ps(topology: Topology, links: _Links, size_bytes: int) -> int:
    """The time of a packet from host to host on a path, through links that are as slow as the slowest."""
    local_ns, global_ns = _delays_ns(topology)
    rate_bps = slowest_bps(topology)
    host_ns = max(host.delay_ns for host in topology.hosts)
    return (
        links[0] * link_ps(local_ns, rate_bps, size_bytes)
        + links[1] * link_ps(global_ns, rate_bps, size_bytes)
        + 2 * link_ps(host_ns, rate_bps, size_bytes)
        + (sum(links) + 1) * topology.latency_ns * PS_PER_NS
    )


def max_rtt_ns(topology: Topology, frame_bytes: int) -> int:
    """The idle round trip of a full frame over the longest bounded path, rounded up.

    Raises:
        SpecError: the topology has no such paths.
    """
    there, back = max_links_on_path(topology)
    data_ps = _one_way_ps(topology, there, frame_bytes)
    return -(-(data_ps + _one_way_ps(topology, back, ACK_BYTES)) // PS_PER_NS)


def max_bdp_bytes(topology: Topology, frame_bytes: int) -> int:
    """What the fastest host link carries in the longest RTT, in whole frames.

    Raises:
        SpecError: the topology has no such paths.
    """
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    rtt_ps = max_rtt_ns(topology, frame_bytes) * PS_PER_NS
    return -(-fastest_bps * rtt_ps // (PS_BITS * frame_bytes)) * frame_bytes
