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
from dataclasses import dataclass, replace

from controller.defaults import base_rtt_ns, bdp_bytes, known, resolve
from controller.scheme import FlowcutConfig, SchemeConfig, parse_scheme
from controller.scheme import MpRdmaConfig as MpRdmaScheme
from experiments.concurrent import most_at_once
from experiments.fault import LinkFault, LinkSlow
from experiments.ideal import wire_bytes
from experiments.words import replace_option, with_option
from hosts.config import FlowcutNicConfig, MpRdmaConfig, NicConfig
from hosts.flow import FlowSpec
from spec import SpecError
from spec.units import parse_bytes, split
from topology import Topology

WINDOW_BDPS = 2
RTO_RTTS = 400
MOST_QUEUE_BYTES = (1 << 31) - 1
"""The switches account for queues in 32 bits."""

PAUSE_RTTS = 200

_BYTE_NS = 8_000_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A window in bytes, or in bandwidth-delay products; one of them is None."""

    size_bytes: int | None = None
    bdps: float | None = None


def parse_window(text: str) -> Window:
    """The window that words such as 64KiB or 1.5BDP describe.

    Raises:
        SpecError: they describe none.
    """
    number, unit = split(text)
    in_bdps = unit.upper() == "BDP"
    window = Window(bdps=float(number)) if in_bdps else Window(size_bytes=parse_bytes(text))
    if not (window.size_bytes or window.bdps):
        raise SpecError("expected more than 0 bytes")
    return window


def window_bytes(topology: Topology, target: str, words: str | None = None) -> int:
    """The window of a flow on a topology at its time scale; without words WINDOW_BDPS.

    BMv2 has no propagation delay, and not every kernel lends it one: its window is that of a network without.
    """
    window = Window(bdps=WINDOW_BDPS) if words is None else parse_window(words)
    if window.size_bytes is not None:
        return window.size_bytes
    assert window.bdps is not None, "a window has one of the two"
    bdp = bdp_bytes(_without_delays(topology) if target == "bmv2" else topology)
    return max(1, round(window.bdps * bdp))


def _without_delays(topology: Topology) -> Topology:
    """The same network with propagation in no time."""
    hosts = tuple(replace(host, delay_ns=0) for host in topology.hosts)
    return replace(topology, hosts=hosts, links=tuple(replace(link, delay_ns=0) for link in topology.links))


def complete_scheme(
    words: str, flows: Sequence[FlowSpec], faults: Sequence[LinkFault], *, window: int, mtu: int
) -> str:
    """The scheme's words with room for every window in any queue, and with how slow a link may be.

    A queue limit that the user gave stays.

    Raises:
        SpecError: the words are no scheme.
    """
    scheme = parse_scheme(words)
    if scheme.queue_limit_bytes is None:
        # one packet may be under way whatever the window
        room = max(window, mtu)
        waiting = most_at_once(flows, lambda flow: wire_bytes(min(flow.bytes, room), mtu)[0])
        # twice, for what switches put before packets (Flowcut §III-A1) and for retransmissions
        words = with_option(words, "queue", str(min(2 * waiting, MOST_QUEUE_BYTES)))
    if isinstance(scheme, FlowcutConfig):
        slowest = min((fault.factor for fault in faults if isinstance(fault, LinkSlow)), default=1.0)
        if slowest < scheme.slowest_fraction:
            words = replace_option(words, "slowest", repr(slowest))
    return words


def nic_config(
    topology: Topology, scheme: SchemeConfig, *, transport: str, window: int, mtu: int, reorder: int | None
) -> NicConfig:
    """The settings of every NIC, on a topology at its time scale, for a scheme that is complete.

    `reorder` None leaves it to the NIC when a packet counts as lost.
    """
    if isinstance(scheme, MpRdmaScheme):
        # a scheme of NICs: without its transport there is nothing but ECMP
        transport = scheme.name
    rtt_ns = base_rtt_ns(topology)
    slowest_bps = min(host.rate_bps for host in topology.hosts)
    config = NicConfig(
        # MP-RDMA begins with one BDP (NSDI'18 §3); a larger burst collapses at once
        mp_rdma=MpRdmaConfig(initial_bytes=min(window, bdp_bytes(topology))),
        mtu_bytes=mtu,
        transport=transport,
        window_bytes=window,
        rto_ns=RTO_RTTS * rtt_ns,
        ack_delay_ns=rtt_ns,
        pause_timeout_ns=PAUSE_RTTS * rtt_ns,
        link_rate_bps=slowest_bps,
        flowcut_nic=_flowcut_nic(topology, scheme, slowest_bps),
    )
    return config if reorder is None else replace(config, reorder_packets=reorder)


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
