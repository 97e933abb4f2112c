# SPDX-License-Identifier: Apache-2.0
"""Defaults of hosts and queues in an experiment: windows, timeouts, queue limits.

    window         WINDOW_BDPS bandwidth-delay products of the longest of all shortest paths
    queue limit    with PFC: none but PFC's own, as a queue can store every window at once; without PFC:
                   schemes.base.usual_limit_bytes, at least QUEUE_BURSTS bursts of a sender; on BMv2: every
                   window at once, but not with the transport tcp, whose window needs losses

The transports dcqcn and tcp have no window unless one is given. With dcqcn queues mark packets as in its
paper's deployment at 40 Gb/s (DCQCN, SIGCOMM 2015, §5), at other rates in proportion, and with dctcp and
mp-rdma from a fifth of a BDP to four fifths of one (schemes.base), unless the scheme gives its own
thresholds.

With HF2T (host-based flowlet fine-tuning), NICs stretch gaps between a flow's packets to the scheme's flowlet
gap, or to a base RTT (the default of that gap) if the scheme has none. A NIC learns the threshold T, above
which it stretches gaps, from as many gaps as the percentile needs (tailrace/hosts/options/hf2t.py). The spec
can change both.

If switches choose paths by entropy values, or hop by hop (the program `spritz`, Spritz §V-A), packets
take paths of many lengths and queues are bounded (schemes.spritz.bounded), so the window is
STEERED_WINDOW_BDPS bandwidth-delay products of the longest path (Spritz Table II), in full packets.

A window of several BDPs lets a queue grow where flows collide, as in the lossless fabric of the Flowcut
paper, where only back-pressure stops a sender: Flowcut reacts to growing round-trip times (§II-B). The
timeouts are longer than a window takes to drain through a link at a tenth of its rate, so that only losses
cause them.
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
from tailrace.schemes.base import SchemeConfig, usual_limit_bytes
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
"""The switches count the bytes of a queue in 32 bits."""


NO_WINDOW = 0
"""The window of a NIC whose transport has none (is `windowless`)."""

QUEUE_BURSTS = 2
"""The limit of a queue without PFC is at least this many bursts of a sender."""

REAL_TIME_MARGIN_NS = 5_000_000
"""HF2T stretches gaps by this much more in real time. The packet before a gap may be late, which shortens the
gap: a run counts as overloaded only if more than 1 % of its frames are 2 ms late (hosts/driver/report.py).
The rest of the margin is for switches that are late, too.
"""

REAL_TIME_MARGIN_PART = 20
"""The margin is also at least 1/20 of the threshold, but at most REACTION_NS, the longest wait for a CPU:
when the hosts' process is not scheduled, a packet leaves late, and the gap behind it becomes so long that
HF2T stretches it.
"""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in bytes, or in bandwidth-delay products; one of them is None."""

    size_bytes: int | None = None
    bdps: float | None = None


def transport_of(wanted: Transport | None, scheme: SchemeConfig, topology: Topology) -> Transport:
    """The transport of an experiment; the scheme's transport if `wanted` is None.

    Raises:
        SpecError: the scheme does not work with `wanted`.
    """
    only = scheme.only_transport
    if wanted is None or scheme.brings_transport:
        return TRANSPORTS.entry(scheme.usual_transport(topology)).struct()
    if only not in (None, wanted.name):
        raise SpecError(f"transport: scheme {scheme.name} needs {only}, found {wanted.name!r}")
    return wanted


def parse_window(text: str) -> Window:
    """The window that a spec such as 64KiB or 1.5BDP describes.

    Raises:
        SpecError: the spec is invalid.
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
    """The window in bytes of a flow; the default if `wanted` is None.

    The topology is at its time scale, the factor by which the run is slower than specified.

    On BMv2 the window is computed without propagation delays: BMv2 has none, and not every kernel adds them.

    Args:
        mtu: payload of a full packet, in bytes.
        frame_bytes: size of a full frame if packets take paths of many lengths; else None.
        transport: name of the transport.
    """
    if wanted is None and TRANSPORTS.entry(transport).struct.windowless:
        return NO_WINDOW
    bdps = WINDOW_BDPS if frame_bytes is None else STEERED_WINDOW_BDPS
    window = wanted or Window(bdps=bdps)
    if window.size_bytes is not None:
        return window.size_bytes
    assert window.bdps is not None, "a window has one of the two"
    network = _without_delays(topology) if target == "bmv2" else topology
    if frame_bytes is None:
        return max(1, round(window.bdps * bdp_bytes(network, full_frame_bytes(mtu))))
    packets = window.bdps * max_bdp_bytes(network, frame_bytes) / frame_bytes
    return max(1, int(packets)) * (frame_bytes - ACK_BYTES)


def room_bytes(topology: Topology, target: str, transport: Transport, mtu: int) -> int | None:
    """The limit of a queue without PFC, in bytes; None for no limit."""
    burst_bytes = transport.loss_driven_burst_bytes
    if target == "bmv2":
        if burst_bytes is None:
            return None
        topology = _without_delays(topology)
    limit = usual_limit_bytes(topology, full_frame_bytes(mtu))
    return max(limit, QUEUE_BURSTS * (burst_bytes or 0))


def _without_delays(topology: Topology) -> Topology:
    """The same network without propagation delays and switch latency."""
    hosts = tuple(replace(host, delay_ns=0) for host in topology.hosts)
    links = tuple(replace(link, delay_ns=0) for link in topology.links)
    return replace(topology, hosts=hosts, links=links, latency_ns=0)


def waiting_bytes(flows: Sequence[FlowSpec], *, window: int, mtu: int) -> int:
    """The queue capacity that stores the windows of all flows at once."""
    # one packet may be in flight even if the window is smaller
    in_flight = max(window, mtu) if window != NO_WINDOW else max((flow.bytes for flow in flows), default=mtu)
    waiting = most_at_once(flows, lambda flow: wire_bytes(min(flow.bytes, in_flight), mtu)[0])
    # twice, for headers that switches prepend (Flowcut §III-A1) and for retransmissions
    return min(2 * waiting, MOST_QUEUE_BYTES)


def most_at_once(flows: Iterable[FlowSpec], weight: Callable[[FlowSpec], int]) -> int:
    """An upper bound of the total weight of flows that are active at the same time.

    Flows are put into chains in which each waits for the one before it, so only one flow of a chain is active
    at a time; the bound is the sum, over all chains, of the weight of the heaviest flow. A flow that waits
    for no other starts a chain, and one that waits for some of several, since the others may still be active.
    A flow that waits for all of several continues the first chain that is still open.

    Args:
        flows: each flow after all flows for which it waits.
        weight: gives the weight of a flow, 0 or more.
    """
    heaviest: list[int] = []
    chain_ending_in: dict[int, int] = {}
    for flow in flows:
        after = () if flow.after_count else flow.after
        before = next((number for number in after if number in chain_ending_in), None)
        if before is None:
            chain = len(heaviest)
            heaviest.append(weight(flow))
        else:
            chain = chain_ending_in.pop(before)
            heaviest[chain] = max(heaviest[chain], weight(flow))
        chain_ending_in[flow.id] = chain
    return sum(heaviest)


def ack_ratio(mtu: int) -> float:
    """ACKs per byte relative to those with packets of the default size, at least 1."""
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

    If `reorder` is None, the NIC's default decides when a packet counts as lost. `scale` is the topology's
    time scale; it is applied to the times in the transport's spec, which are at full speed. `switches` has
    the clock by which switches detect flowlets.

    Raises:
        SpecError: the scheme's and the transport's settings are incompatible.
    """
    try:
        # given_by checks the type of the value if the scheme is defined by a plug-in
        of_scheme: NicConfig = given_by(scheme, scheme.nic(topology, context, scale), NicConfig, "nic")
        config = replace(
            of_scheme,
            hf2t=hf2t_config(topology, scheme, switches),
            **scaled(transport, scale).settings(),  # the fields that the transport's spec determines
        )
    except ConfigError as error:
        raise SpecError(str(error)) from error
    return config if reorder is None else replace(config, reorder_packets=reorder)


def hf2t_config(topology: Topology, scheme: Resolved, switches: Target) -> Hf2tConfig | None:
    """The settings of HF2T in NICs, for a topology and a scheme at their time scale; None without HF2T."""
    spec = scheme.hf2t
    if spec is None:
        return None
    gap_ns = spec.stretch_ns or scheme.flowlet_gap_ns or base_rtt_ns(topology, scheme.frame_bytes)
    percentile = round(spec.percentile * PERMYRIAD / 100)  # in parts per 10,000
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
        delay=spec.delay,
    )


def _margin_ns(threshold_ns: int) -> int:
    """By how much gaps are stretched beyond the threshold if the hosts run as a process in real time."""
    return max(REAL_TIME_MARGIN_NS, min(threshold_ns // REAL_TIME_MARGIN_PART, REACTION_NS))
