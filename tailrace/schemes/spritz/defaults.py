# SPDX-License-Identifier: Apache-2.0
"""Defaults of schemes over bounded simple paths, which follow from the longest of them (Spritz, Table II).

All follow from the topology, as elsewhere (schemes.defaults).

    longest RTT    a full frame on the longest bounded path and its ACK on the longest minimal one, without
                   queueing: propagation of all links, sending by hosts and switches, latency of switches
    longest BDP    what the fastest host link carries in that time, in whole frames. With the links of Table
                   II that is 88 frames in its Dragonfly and 92 in its Slim Fly, as it says; the paper has no
                   formula, and with the ACK on the longest path it would be 107 and 116
    queue limit    one longest BDP, as RED's base
    RED            from 0.2 to 0.8 of the queue limit
    explore, ecn   0.5 and 0.1 of the longest BDP in frames, rounded down: 44 and 8 in the Dragonfly
    timer          TIMER_RTTS longest RTTs (assumption; the paper gives no value)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

from tailrace.schemes.base import RedConfig, SchemeConfig
from tailrace.schemes.errors import IntentError
from tailrace.schemes.spritz.declaration import BoundedConfig, RoutedConfig, SpritzConfig
from tailrace.topology import Topology, max_switches_on_path
from tailrace.topology.kinds import SLIM_FLY, TREES, check_kind
from tailrace.topology.paths.segments import FRAME_BYTES, link_ps
from tailrace.words import SpecError

ACK_BYTES = 64
"""The headers of Spritz, Table II."""

TIMER_RTTS = 100

_PS_PER_NS = 1_000
_BYTE_PS = 8 * 10**12
_RED_FIFTHS = (1, 4)
_EXPLORE_PART, _ECN_PART = 2, 10
"""One over these is the part of a BDP."""

_Links = tuple[int, int]
"""Local and global links of a path."""


def longest_links(topology: Topology) -> tuple[_Links, _Links]:
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
    slowest_host_bps = min(host.rate_bps for host in topology.hosts)
    rate_bps = min((link.rate_bps for link in topology.links), default=slowest_host_bps)
    rate_bps = min(rate_bps, slowest_host_bps)
    host_ns = max(host.delay_ns for host in topology.hosts)
    return (
        links[0] * link_ps(local_ns, rate_bps, size_bytes)
        + links[1] * link_ps(global_ns, rate_bps, size_bytes)
        + 2 * link_ps(host_ns, rate_bps, size_bytes)
        + (sum(links) + 1) * topology.latency_ns * _PS_PER_NS
    )


def _frame_bytes(config: SchemeConfig | None, frame_bytes: int | None) -> int:
    of_config = config.frame_bytes if isinstance(config, BoundedConfig) else None
    return frame_bytes or of_config or FRAME_BYTES


def longest_rtt_ns(
    topology: Topology, config: SchemeConfig | None = None, frame_bytes: int | None = None
) -> int:
    """The idle round trip over the longest bounded path, rounded up.

    Args:
        config: says how large a full frame is, where `frame_bytes` does not.

    Raises:
        SpecError: the topology has no such paths.
    """
    there, back = longest_links(topology)
    data_ps = _one_way_ps(topology, there, _frame_bytes(config, frame_bytes))
    return -(-(data_ps + _one_way_ps(topology, back, ACK_BYTES)) // _PS_PER_NS)


def longest_bdp_bytes(
    topology: Topology, config: SchemeConfig | None = None, frame_bytes: int | None = None
) -> int:
    """What the fastest host link carries in the longest RTT, in whole frames.

    Args and raises: as `longest_rtt_ns`.
    """
    frame = _frame_bytes(config, frame_bytes)
    fastest_bps = max(host.rate_bps for host in topology.hosts)
    rtt_ps = longest_rtt_ns(topology, frame_bytes=frame) * _PS_PER_NS
    return -(-fastest_bps * rtt_ps // (_BYTE_PS * frame)) * frame


def resolve_bounded(config: BoundedConfig, topology: Topology) -> BoundedConfig:
    """The same scheme with what it needs over the program `spritz`; unchanged where another one runs.

    Raises:
        IntentError: the topology has no such paths, or words contradict the program.
    """
    if not config.mode:
        for key, value in (("trim", config.trim), ("repair", config.repair), ("frame", config.frame_bytes)):
            if value is not None:
                raise IntentError(f"scheme {config.name}: {key} goes with draw=hop")
        return config
    try:
        check_kind(topology)
    except SpecError as error:
        raise IntentError(f"scheme {config.name}: {error}") from None
    if isinstance(config, RoutedConfig):
        usual = next(field.default for field in fields(config) if field.name == "grain")
        if config.grain != usual:
            raise IntentError(f"scheme {config.name}: per={config.grain} goes with draw=group")
    frame = _frame_bytes(config, None)
    bdp_bytes = longest_bdp_bytes(topology, frame_bytes=frame)
    limit_bytes = bdp_bytes if config.queue_limit_bytes is None else config.queue_limit_bytes
    red = config.red
    if red is None:
        kmin, kmax = (max(1, (limit_bytes or bdp_bytes) * fifths // 5) for fifths in _RED_FIFTHS)
        red = RedConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax_permille=1000)
    config = replace(
        config,
        queue_limit_bytes=limit_bytes,
        red=red,
        frame_bytes=frame,
        trim=config.trim is not False,
        repair=bool(config.repair),
    )
    if isinstance(config, SpritzConfig):
        return _with_thresholds(config, topology, bdp_bytes // frame)
    return config


def _with_thresholds(config: SpritzConfig, topology: Topology, bdp_packets: int) -> SpritzConfig:
    explore, ecn, timer_ns = config.explore_packets, config.ecn_packets, config.timer_ns
    return replace(
        config,
        explore_packets=max(1, bdp_packets // _EXPLORE_PART) if explore is None else explore,
        ecn_packets=max(1, bdp_packets // _ECN_PART) if ecn is None else ecn,
        timer_ns=TIMER_RTTS * longest_rtt_ns(topology, config) if timer_ns is None else timer_ns,
    )
