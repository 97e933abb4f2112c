# SPDX-License-Identifier: Apache-2.0
"""What an experiment decides for hosts and queues where the specs do not: windows, timeouts, room in queues.

    window         WINDOW_BDPS bandwidth-delay products of the longest of the shortest paths
    queue limit    room for every window at once, in any one queue: nothing is dropped unless a fault drops it

With the transports dcqcn and tcp there is no window unless one is given, so a queue has room for all flows;
with tcp, which finds its window by losses, only for TCP_QUEUE_BDPS bandwidth-delay products, unless there is
PFC. With dcqcn queues mark as in the paper's deployment at 40 Gb/s (DCQCN, SIGCOMM 2015, §5), at other rates
in proportion, unless the scheme says how.

HF2T stretches gaps to the pause that begins a flowlet in the scheme, or to a base RTT, which is what it would
be, and learns T from as many gaps as its percentile needs (tailrace/hosts/options/hf2t.py), unless the spec
say otherwise.

Where switches steer by entropy values, or draw paths hop by hop (the program `spritz`, Spritz §V-A), packets
take paths of many lengths and queues are bounded (schemes.spritz.bounded), so the window is of
STEERED_WINDOW_BDPS bandwidth-delay products of the longest path (Spritz Table II), as many full packets.

A window of several BDPs lets a queue grow where flows collide, as it does in the lossless fabric of the
paper, where nothing but back-pressure stops a sender: growing round trips are what Flowcut looks at
(§II-B). The timeouts are longer than a window takes to drain through a link at a tenth of its rate, so that
they follow losses only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tailrace.codec.sizes import HEADER_BYTES, wire_bytes
from tailrace.experiments.plan.defaults import MTU_BYTES
from tailrace.experiments.plan.pfc import REACTION_NS
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.gaps.histogram import PERMYRIAD
from tailrace.hosts.options.hf2t import Hf2tConfig, train_gaps
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.transport import TRANSPORTS, Transport
from tailrace.hosts.options.transports import GoBackN
from tailrace.p4rt.target import Target
from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.spec import SpecError
from tailrace.spec.plugins import given_by
from tailrace.spec.scale import scaled
from tailrace.spec.units import parse_bytes, split
from tailrace.topology import Topology
from tailrace.topology.timing import ACK_BYTES, base_rtt_ns, bdp_bytes, full_frame_bytes, max_bdp_bytes

WINDOW_BDPS = 2
STEERED_WINDOW_BDPS = 1.5
MOST_QUEUE_BYTES = (1 << 31) - 1
"""The switches account for queues in 32 bits."""


NO_WINDOW = 0
"""What a NIC takes for none, where the transport is `windowless`."""

TCP_QUEUE_BDPS = 2
"""Room in a queue with the transport tcp. Assumption: that of a switch with little memory, 0.3 MB a
port at 100 Gb/s and 12 us; one is what a single flow needs to fill its link after a loss."""

TCP_QUEUE_BURSTS = 2
"""And at least room for so many bursts of a sender."""

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


@dataclass(frozen=True, slots=True)
class Window:
    """A window in bytes, or in bandwidth-delay products; one of them is None."""

    size_bytes: int | None = None
    bdps: float | None = None


def transport_of(wanted: Transport | None, scheme: SchemeConfig, topology: Topology) -> Transport:
    """The transport of an experiment; that of the scheme where none is wanted.

    Raises:
        SpecError: the scheme cannot work over it.
    """
    only = scheme.only_transport
    if wanted is None or scheme.brings_transport:
        return TRANSPORTS.entry(scheme.usual_transport(topology)).struct()
    if only not in (None, wanted.name):
        raise SpecError(f"transport: scheme {scheme.name} needs {only}, found {wanted.name!r}")
    return wanted


def parse_window(text: str) -> Window:
    """The window that a spec such as 64KiB or 1.5BDP describe.

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
    wanted: Window | None = None,
    *,
    mtu: int,
    frame_bytes: int | None = None,
    transport: str = GoBackN.name,
) -> int:
    """The window of a flow on a topology at its time scale; the default where none is wanted.

    BMv2 has no propagation delay, and not every kernel lends it one: its window is that of a network without.

    Args:
        mtu: payload of a full packet, in bytes.
        frame_bytes: a full frame, where packets take paths of many lengths; else None.
        transport: name of the transport.
    """
    if wanted is None and TRANSPORTS.entry(transport).struct.windowless:
        return NO_WINDOW
    bdps = WINDOW_BDPS if frame_bytes is None else STEERED_WINDOW_BDPS
    window = wanted or Window(bdps=bdps)
    if window.size_bytes is not None:
        return window.size_bytes
    assert window.bdps is not None, "a window has one of the two"
    known_delays = _without_delays(topology) if target == "bmv2" else topology
    if frame_bytes is None:
        return max(1, round(window.bdps * bdp_bytes(known_delays, full_frame_bytes(mtu))))
    packets = window.bdps * max_bdp_bytes(known_delays, frame_bytes) / frame_bytes
    return max(1, int(packets)) * (frame_bytes - ACK_BYTES)


def room_bytes(topology: Topology, target: str, transport: Transport, mtu: int) -> int | None:
    """Room that a queue has where losses are what leads the transport; None: it is not led by losses."""
    burst_bytes = transport.led_by_losses_bytes
    if burst_bytes is None:
        return None
    bdps = window_bytes(topology, target, Window(bdps=TCP_QUEUE_BDPS), mtu=mtu)
    return max(bdps, TCP_QUEUE_BURSTS * burst_bytes)


def _without_delays(topology: Topology) -> Topology:
    """The same network with propagation in no time."""
    hosts = tuple(replace(host, delay_ns=0) for host in topology.hosts)
    links = tuple(replace(link, delay_ns=0) for link in topology.links)
    return replace(topology, hosts=hosts, links=links, latency_ns=0)


def waiting_bytes(flows: Sequence[FlowSpec], *, window: int, mtu: int) -> int:
    """Room for every window in any one queue."""
    # one packet may be under way whatever the window
    room = max(window, mtu) if window != NO_WINDOW else max(flow.bytes for flow in flows)
    waiting = most_at_once(flows, lambda flow: wire_bytes(min(flow.bytes, room), mtu)[0])
    # twice, for what switches put before packets (Flowcut §III-A1) and for retransmissions
    return min(2 * waiting, MOST_QUEUE_BYTES)


def most_at_once(flows: Iterable[FlowSpec], weight: Callable[[FlowSpec], int]) -> int:
    """A bound for the sum of the weights of flows that are under way at the same time.

    Flows are put into chains in which each waits for the one before it, so that only one of a chain is under
    way; the bound is the sum over all chains of their heaviest flow. Flows that wait for none are chains of
    their own. Whoever waits for several joins the first of them that nobody has joined yet.

    Args:
        flows: each after all that it waits for.
        weight: of a flow, 0 or more.
    """
    heaviest: list[int] = []
    chain_ending_in: dict[int, int] = {}
    for flow in flows:
        before = next((number for number in flow.after if number in chain_ending_in), None)
        if before is None:
            chain = len(heaviest)
            heaviest.append(weight(flow))
        else:
            chain = chain_ending_in.pop(before)
            heaviest[chain] = max(heaviest[chain], weight(flow))
        chain_ending_in[flow.id] = chain
    return sum(heaviest)


def ack_ratio(mtu: int) -> float:
    """ACKs per byte, over those of packets of the usual size, at least 1."""
    return max(1.0, (MTU_BYTES + HEADER_BYTES) / (mtu + HEADER_BYTES))


def nic_config(
    topology: Topology,
    scheme: Resolved,
    context: SchemeContext,
    transport: Transport,
    *,
    reorder: int | None,
    scale: float = 1,
    switches: Target,
) -> NicConfig:
    """The settings of every NIC, on a topology at its time scale.

    `reorder` None leaves it to the NIC when a packet counts as lost. `scale` is that of the topology, for the
    times in the transport's spec, which are at full speed. `switches` has the clock by which they detect
    flowlets.

    Raises:
        SpecError: what scheme and transport ask for does not go together.
    """
    try:
        of_scheme: NicConfig = given_by(scheme, scheme.nic(topology, context, scale), NicConfig, "nic")
        config = replace(
            of_scheme,
            hf2t=hf2t_config(topology, scheme, switches),
            **scaled(transport, scale).settings(),
        )
    except ConfigError as error:
        raise SpecError(str(error)) from error
    return config if reorder is None else replace(config, reorder_packets=reorder)


def hf2t_config(topology: Topology, scheme: Resolved, switches: Target) -> Hf2tConfig | None:
    """What NICs do about gaps, on a topology and for a scheme at their time scale; None: nothing."""
    spec = scheme.hf2t
    if spec is None:
        return None
    gap_ns = spec.stretch_ns or scheme.flowlet_gap_ns or base_rtt_ns(topology, scheme.frame_bytes)
    percentile = round(spec.percentile * PERMYRIAD / 100)
    return Hf2tConfig(
        threshold_ns=switches.ticks(gap_ns) * switches.tick_ns,
        percentile=percentile,
        min_thr=spec.min_thr,
        max_thr=spec.max_thr,
        train_gaps=train_gaps(percentile) if spec.train is None else spec.train,
        tick_ns=switches.tick_ns,
        margin_ns=0 if switches.name == "virtual" else _margin_ns(gap_ns),
        dynamic=spec.dynamic,
        t_ns=spec.t_ns,
        spare_bytes=spec.spare_bytes,
        retrain=spec.retrain,
    )


def _margin_ns(threshold_ns: int) -> int:
    """By how much gaps are stretched beyond the threshold where hosts are a process."""
    return max(REAL_TIME_MARGIN_NS, min(threshold_ns // REAL_TIME_MARGIN_PART, REACTION_NS))
