# SPDX-License-Identifier: Apache-2.0
"""What an experiment decides for hosts and queues where the words do not: windows, timeouts, room in queues.

    window         WINDOW_BDPS bandwidth-delay products of the longest of the shortest paths
    queue limit    room for every window at once, in any one queue: nothing is dropped unless a fault drops it
    rto            RTO_RTTS base round trips without any progress
    pause timeout  PAUSE_RTTS base round trips (Flowcut §IV-A)

With the transports dcqcn and tcp there is no window unless one is given, so a queue has room for all flows;
with tcp, which finds its window by losses, only for TCP_QUEUE_BDPS bandwidth-delay products, unless there is
PFC. With dcqcn queues mark as in the paper's deployment at 40 Gb/s (DCQCN, SIGCOMM 2015, §5), at other rates
in proportion, unless the scheme says how. Where NICs choose paths by Hermes, the transport is dcqcn.

HF2T stretches gaps to the pause that begins a flowlet in the scheme, or to a base RTT, which is what it would
be, and learns T from as many gaps as its percentile needs (tailrace/hosts/options/hf2t.py), unless the words
say otherwise.

Where switches steer by entropy values, or draw paths hop by hop (the program `spritz`, Spritz §V-A), packets
take paths of many lengths and queues are bounded, so it is otherwise:

    transport      dctcp
    window         STEERED_WINDOW_BDPS bandwidth-delay products of the longest path (Spritz Table II), as many
                   full packets
    queue limit    that of the scheme (schemes.spritz.defaults)
    rto            of each packet: STEERED_RTO_MARGIN times the longest idle round trip with a full queue at
                   every switch. The paper gives none; with trimming only what has vanished waits for it.
                   It does not double, and where queues trim it leaves the window alone: congestion shows by
                   marks and NACKs, a timeout tells of a dead path

A window of several BDPs lets a queue grow where flows collide, as it does in the lossless fabric of the
paper, where nothing but back-pressure stops a sender: growing round trips are what Flowcut looks at
(§II-B). The timeouts are longer than a window takes to drain through a link at a tenth of its rate, so that
they follow losses only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tailrace.codec.sizes import HEADER_BYTES, wire_bytes
from tailrace.experiments.faults.fault import LinkFault, LinkSlow
from tailrace.experiments.plan.defaults import MTU_BYTES
from tailrace.experiments.plan.pfc import REACTION_NS
from tailrace.experiments.plan.words import replace_option, with_option
from tailrace.experiments.workloads.under_way import most_at_once
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.gaps.histogram import WHOLE
from tailrace.hosts.options.hf2t import Hf2tConfig, train_gaps
from tailrace.hosts.options.nic import (
    DCQCN,
    HERMES,
    STEERABLE,
    TCP,
    TRANSPORTS,
    WITHOUT_WINDOW,
    DctcpConfig,
    FlowcutNicConfig,
    MpRdmaConfig,
    NicConfig,
    SteeringConfig,
)
from tailrace.hosts.options.transports import Transport, parse_transport, with_tcp
from tailrace.p4rt.target import Target
from tailrace.schemes.defaults import base_rtt_ns, bdp_bytes, control_share, known, resolve
from tailrace.schemes.path_tags import follows_tags, hermes_config
from tailrace.schemes.registry import BoundedConfig, FlowcutConfig, SchemeConfig, SpritzConfig, parse_scheme
from tailrace.schemes.registry import MpRdmaConfig as MpRdmaScheme
from tailrace.schemes.spritz.defaults import longest_bdp_bytes, longest_links, longest_rtt_ns
from tailrace.schemes.spritz.frames import FRAME_HEADER_BYTES, STEERED_PROGRAM, frame_bytes
from tailrace.topology import Topology
from tailrace.words import SpecError
from tailrace.words.scale import scaled
from tailrace.words.units import parse_bytes, split

WINDOW_BDPS = 2
STEERED_WINDOW_BDPS = 1.5
RTO_RTTS = 400
MOST_QUEUE_BYTES = (1 << 31) - 1
"""The switches account for queues in 32 bits."""

STEERED_RTO_MARGIN = 1.5
PAUSE_RTTS = 200

NO_WINDOW = 0
"""What a NIC takes for none; WITHOUT_WINDOW only."""

TCP_QUEUE_BDPS = 2
"""Room in a queue with the transport tcp. Assumption: that of a switch with little memory, 0.3 MB a
port at 100 Gb/s and 12 us; one is what a single flow needs to fill its link after a loss."""

TCP_QUEUE_BURSTS = 2
"""And at least room for so many bursts of a sender."""

DCQCN_RED_BYTES = {"kmin": 5_000, "kmax": 200_000}
DCQCN_PMAX = 0.01
DCQCN_RATE_BPS = 40_000_000_000
"""Marking for dcqcn at that rate; thresholds grow with the rate, as what is under way does."""

REAL_TIME_MARGIN_NS = 5_000_000
"""HF2T stretches gaps by so much more in real time, where a run may have 1 % of its frames 2 ms late or later
before it counts as overloaded (tailrace/hosts/driver/report.py): that is for the packet before the gap, which
must not make it shorter, and as much and some more for switches that are late, too.
"""

REAL_TIME_MARGIN_PART = 20
"""By at least this part of the threshold, up to the time for which a process may wait for a processor: when
the hosts' process stands still, a packet leaves late, and the gap behind it is so long that it is among those
to be stretched.
"""

_BYTE_NS = 8_000_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A window in bytes, or in bandwidth-delay products; one of them is None."""

    size_bytes: int | None = None
    bdps: float | None = None


def transport_of(words: str | None, scheme: SchemeConfig, *, steered: bool) -> Transport:
    """The transport of an experiment; without words that of the scheme.

    Args:
        steered: the scheme runs over the program `spritz`.

    Raises:
        SpecError: the words are no transport.
    """
    if isinstance(scheme, MpRdmaScheme):
        return Transport(scheme.name)
    if words is not None:
        return parse_transport(words)
    if steered:
        return Transport(STEERABLE)
    return Transport(DCQCN if follows_tags(scheme) else TRANSPORTS[0])


def only_transport(scheme: SchemeConfig) -> str | None:
    """The name of the only transport that a scheme works over; None: it leaves that to others."""
    if isinstance(scheme, MpRdmaScheme):
        # a scheme of NICs: without its transport there is nothing but ECMP
        return scheme.name
    if scheme.steering:
        return STEERABLE
    return DCQCN if follows_tags(scheme) else None


def _check_transport(scheme: SchemeConfig, name: str) -> None:
    """Refuses a transport that a scheme cannot work over."""
    only = only_transport(scheme)
    if only not in (None, name):
        raise SpecError(f"transport: scheme {scheme.name} needs {only}, found {name!r}")


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


def window_bytes(
    topology: Topology,
    target: str,
    words: str | None = None,
    *,
    steered: SchemeConfig | None = None,
    transport: str = TRANSPORTS[0],
) -> int:
    """The window of a flow on a topology at its time scale; without words the default.

    BMv2 has no propagation delay, and not every kernel lends it one: its window is that of a network without.

    Args:
        steered: the scheme, complete, where it runs over the program `spritz`.
        transport: name of the transport.
    """
    if words is None and transport in WITHOUT_WINDOW:
        return NO_WINDOW
    bdps = WINDOW_BDPS if steered is None else STEERED_WINDOW_BDPS
    window = Window(bdps=bdps) if words is None else parse_window(words)
    if window.size_bytes is not None:
        return window.size_bytes
    assert window.bdps is not None, "a window has one of the two"
    known_delays = _without_delays(topology) if target == "bmv2" else topology
    if steered is None:
        return max(1, round(window.bdps * bdp_bytes(known_delays)))
    packets = window.bdps * longest_bdp_bytes(known_delays, steered) / frame_bytes(steered)
    return max(1, int(packets)) * (frame_bytes(steered) - FRAME_HEADER_BYTES)


def room_bytes(topology: Topology, target: str, transport: Transport) -> int | None:
    """Room that a queue has where losses are what leads the transport; None: it is not led by losses."""
    if transport.name != TCP:
        return None
    bdps = window_bytes(topology, target, f"{TCP_QUEUE_BDPS}BDP")
    return max(bdps, TCP_QUEUE_BURSTS * transport.tcp.config.burst_bytes)


def _without_delays(topology: Topology) -> Topology:
    """The same network with propagation in no time."""
    hosts = tuple(replace(host, delay_ns=0) for host in topology.hosts)
    links = tuple(replace(link, delay_ns=0) for link in topology.links)
    return replace(topology, hosts=hosts, links=links, latency_ns=0)


def complete_scheme(
    words: str,
    flows: Sequence[FlowSpec],
    faults: Sequence[LinkFault],
    *,
    window: int,
    mtu: int,
    rate_bps: int = DCQCN_RATE_BPS,
    bounded: bool = False,
    transport: str = TRANSPORTS[0],
    room: int | None = None,
) -> str:
    """The scheme's words with room for every window in any queue, with the marks that the transport (by its
    name) needs, with how slow a link may be, and with room for the ACKs of small packets.

    A queue limit or marking that the user gave stays, and so does what a `bounded` scheme chooses itself.
    `rate_bps` is that of the fastest link at full speed, `room` that of a queue in bytes if it is bounded.

    Raises:
        SpecError: the words are no scheme.
    """
    scheme = parse_scheme(words)
    if scheme.queue_limit_bytes is None and room is not None and not bounded:
        words = with_option(words, "queue", str(room))
    elif scheme.queue_limit_bytes is None and not bounded:
        # one packet may be under way whatever the window
        room = max(window, mtu) if window != NO_WINDOW else max(flow.bytes for flow in flows)
        waiting = most_at_once(flows, lambda flow: wire_bytes(min(flow.bytes, room), mtu)[0])
        # twice, for what switches put before packets (Flowcut §III-A1) and for retransmissions
        words = with_option(words, "queue", str(min(2 * waiting, MOST_QUEUE_BYTES)))
    if scheme.red is None and transport == DCQCN and not bounded:
        for key, size_bytes in DCQCN_RED_BYTES.items():
            words = with_option(words, key, str(max(1, size_bytes * rate_bps // DCQCN_RATE_BPS)))
        words = with_option(words, "pmax", str(DCQCN_PMAX))
    if scheme.control_share is None and mtu < MTU_BYTES:
        # as many answers, to shorter packets
        share = control_share(scheme) * (MTU_BYTES + HEADER_BYTES) / (mtu + HEADER_BYTES)
        words = with_option(words, "control", repr(min(1.0, round(share, 3))))
    if isinstance(scheme, FlowcutConfig):
        slowest = min((fault.factor for fault in faults if isinstance(fault, LinkSlow)), default=1.0)
        if slowest < scheme.slowest_fraction:
            words = replace_option(words, "slowest", repr(slowest))
    return words


def nic_config(
    topology: Topology,
    scheme: SchemeConfig,
    *,
    transport: Transport,
    window: int,
    mtu: int,
    reorder: int | None,
    scale: float = 1,
    switches: Target,
) -> NicConfig:
    """The settings of every NIC, on a topology at its time scale, for a scheme that is complete.

    `reorder` None leaves it to the NIC when a packet counts as lost. `scale` is that of the topology, for the
    words of the transport, which are at full speed. `switches` are what tells flowlets apart.

    Raises:
        SpecError: the scheme cannot work over this transport.
    """
    config = _transport_config(
        topology, scheme, transport=transport, window=window, mtu=mtu, reorder=reorder, scale=scale
    )
    return replace(config, hf2t=hf2t_config(topology, scheme, switches))


def _transport_config(
    topology: Topology,
    scheme: SchemeConfig,
    *,
    transport: Transport,
    window: int,
    mtu: int,
    reorder: int | None,
    scale: float,
) -> NicConfig:
    """The same but for what is done about gaps."""
    if scheme.program == STEERED_PROGRAM:
        config = _steered(topology, scheme, transport=transport.name, window=window, mtu=mtu)
        return with_tcp(config, scaled(transport.tcp, scale))
    _check_transport(scheme, transport.name)
    rtt_ns = base_rtt_ns(topology)
    slowest_bps = min(host.rate_bps for host in topology.hosts)
    config = NicConfig(
        # MP-RDMA begins with one BDP (NSDI'18 §3); a larger burst collapses at once
        mp_rdma=MpRdmaConfig(initial_bytes=min(window, bdp_bytes(topology))),
        mtu_bytes=mtu,
        transport=transport.name,
        window_bytes=window,
        rto_ns=RTO_RTTS * rtt_ns,
        ack_delay_ns=rtt_ns,
        pause_timeout_ns=PAUSE_RTTS * rtt_ns,
        link_rate_bps=slowest_bps,
        flowcut_nic=_flowcut_nic(topology, scheme, slowest_bps),
        dcqcn=scaled(transport.dcqcn, scale),
    )
    if follows_tags(scheme):
        config = replace(
            config,
            steering=SteeringConfig(algorithm=HERMES),
            hermes=hermes_config(topology, scheme, scale),
        )
    config = with_tcp(config, scaled(transport.tcp, scale))
    return config if reorder is None else replace(config, reorder_packets=reorder)


def hf2t_config(topology: Topology, scheme: SchemeConfig, switches: Target) -> Hf2tConfig | None:
    """What NICs do about gaps, on a topology and for a scheme at their time scale; None: nothing."""
    words = scheme.hf2t
    if words is None:
        return None
    gap_ns = words.stretch_ns or resolve(scheme, topology).flowlet_gap_ns or base_rtt_ns(topology)
    percentile = round(words.percentile * WHOLE / 100)
    return Hf2tConfig(
        threshold_ns=switches.ticks(gap_ns) * switches.tick_ns,
        percentile=percentile,
        min_thr=words.min_thr,
        max_thr=words.max_thr,
        train_gaps=train_gaps(percentile) if words.train is None else words.train,
        tick_ns=switches.tick_ns,
        margin_ns=0 if switches.name == "virtual" else _margin_ns(gap_ns),
        dynamic=words.dynamic,
        t_ns=words.t_ns,
        spare_bytes=words.spare_bytes,
        retrain=words.retrain,
    )


def _margin_ns(threshold_ns: int) -> int:
    """By how much gaps are stretched beyond the threshold where hosts are a process."""
    return max(REAL_TIME_MARGIN_NS, min(threshold_ns // REAL_TIME_MARGIN_PART, REACTION_NS))


def _steered(topology: Topology, scheme: SchemeConfig, *, transport: str, window: int, mtu: int) -> NicConfig:
    """The settings where switches steer, or draw paths hop by hop."""
    _check_transport(scheme, transport)
    rtt_ns = longest_rtt_ns(topology, scheme)
    rates_bps = [host.rate_bps for host in topology.hosts] + [link.rate_bps for link in topology.links]
    slowest_bps = min(rates_bps)
    switches = sum(longest_links(topology)[0]) + 1
    trims = isinstance(scheme, BoundedConfig) and scheme.trim
    queueing_ns = switches * known(scheme.queue_limit_bytes) * _BYTE_NS // slowest_bps
    return NicConfig(
        mtu_bytes=mtu,
        transport=transport,
        window_bytes=window,
        rto_ns=round(STEERED_RTO_MARGIN * (rtt_ns + queueing_ns)),
        rto_backoff=0,
        ack_delay_ns=rtt_ns,
        link_rate_bps=slowest_bps,
        dctcp=DctcpConfig(rtt_ns=rtt_ns, timeout_is_loss=not trims),
        steering=_steering(scheme, rtt_ns),
    )


def _steering(scheme: SchemeConfig, rtt_ns: int) -> SteeringConfig | None:
    """How NICs choose paths; None where switches do."""
    if isinstance(scheme, SpritzConfig):
        return SteeringConfig(
            algorithm=scheme.steering,
            explore_threshold=known(scheme.explore_packets),
            ecn_threshold=known(scheme.ecn_packets),
            buffer=scheme.buffer,
            timer_ns=known(scheme.timer_ns),
            min_bias_factor=scheme.bias,
        )
    if not scheme.steering:
        return None
    return SteeringConfig(algorithm=scheme.steering, flicr_epoch_ns=rtt_ns)


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
