# SPDX-License-Identifier: Apache-2.0
"""What an experiment decides for hosts and queues where the words do not: windows, timeouts, room in queues.

    window         WINDOW_BDPS bandwidth-delay products of the longest of the shortest paths
    queue limit    room for every window at once, in any one queue: nothing is dropped unless a fault drops it
    rto            RTO_RTTS base round trips without any progress
    pause timeout  PAUSE_RTTS base round trips (Flowcut §IV-A)

A window of several BDPs lets a queue grow where flows collide, as it does in the lossless fabric of the
paper, where nothing but back-pressure stops a sender: growing round trips are what Flowcut looks at
(§II-B). The timeouts are longer than a window takes to drain through a link at a tenth of its rate, so that
they follow losses only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from controller.defaults import base_rtt_ns, bdp_bytes, known, resolve
from controller.scheme import FlowcutConfig, SchemeConfig, parse_scheme
from experiments.fault import LinkFault, LinkSlow
from experiments.ideal import wire_bytes
from experiments.words import replace_option, with_option
from hosts.config import FlowcutNicConfig, NicConfig
from hosts.flow import FlowSpec
from topology import Topology

MTU_BYTES = 1024
WINDOW_BDPS = 2
RTO_RTTS = 400
PAUSE_RTTS = 200

_BYTE_NS = 8_000_000_000


def window_bytes(topology: Topology, target: str) -> int:
    """The default window of a flow on a topology at its time scale.

    BMv2 has no propagation delay, and not every kernel lends it one: its window is that of a network without.
    """
    return WINDOW_BDPS * bdp_bytes(_without_delays(topology) if target == "bmv2" else topology)


def _without_delays(topology: Topology) -> Topology:
    """The same network with propagation in no time."""
    hosts = tuple(replace(host, delay_ns=0) for host in topology.hosts)
    return replace(topology, hosts=hosts, links=tuple(replace(link, delay_ns=0) for link in topology.links))


def complete_scheme(words: str, flows: Sequence[FlowSpec], faults: Sequence[LinkFault], window: int) -> str:
    """The scheme's words with room for every window in any queue, and with how slow a link may be.

    A queue limit that the user gave stays.

    Raises:
        SpecError: the words are no scheme.
    """
    scheme = parse_scheme(words)
    if scheme.queue_limit_bytes is None:
        waiting = sum(wire_bytes(min(flow.bytes, window), MTU_BYTES)[0] for flow in flows)
        # twice, for what switches put before packets (Flowcut §III-A1) and for retransmissions
        words = with_option(words, "queue", str(2 * waiting))
    if isinstance(scheme, FlowcutConfig):
        slowest = min((fault.factor for fault in faults if isinstance(fault, LinkSlow)), default=1.0)
        if slowest < scheme.slowest_fraction:
            words = replace_option(words, "slowest", repr(slowest))
    return words


def nic_config(topology: Topology, scheme: SchemeConfig, *, transport: str, window: int) -> NicConfig:
    """The settings of every NIC, on a topology at its time scale, for a scheme that is complete."""
    rtt_ns = base_rtt_ns(topology)
    slowest_bps = min(host.rate_bps for host in topology.hosts)
    return NicConfig(
        mtu_bytes=MTU_BYTES,
        transport=transport,
        window_bytes=window,
        rto_ns=RTO_RTTS * rtt_ns,
        ack_delay_ns=rtt_ns,
        pause_timeout_ns=PAUSE_RTTS * rtt_ns,
        link_rate_bps=slowest_bps,
        flowcut_nic=_flowcut_nic(topology, scheme, slowest_bps),
    )


def _flowcut_nic(topology: Topology, scheme: SchemeConfig, rate_bps: int) -> FlowcutNicConfig | None:
    """The NIC's part of Flowcut's NIC variant, with the same defaults as the switch's."""
    if not isinstance(scheme, FlowcutConfig) or scheme.variant != "nic":
        return None
    config = resolve(scheme, topology)
    assert isinstance(config, FlowcutConfig)
    growth = known(config.growth_threshold)
    return FlowcutNicConfig(
        rtt_threshold=config.rtt_threshold,
        growth_threshold=None if math.isinf(growth) else growth,
        alpha=config.alpha,
        ns_per_byte=_BYTE_NS / rate_bps,
        age_ns=known(config.age_ns),
        min_left=known(config.min_left_packets),
        resume_bytes=config.resume_bytes,
    )
