# SPDX-License-Identifier: Apache-2.0
"""The cost of Flowcut in bytes: extra bytes of packets, the state of a flow, and how many flows have state.

Exact arithmetic after Flowcut §III-A. A flow has state while it has a packet in flight. If the f flows of a
host share its rate B, and a round trip takes l, then with packets of M bytes (Eq. 1)

    active flows per host = f             if B·l / (f·M) >= 1: each flow has a packet in flight
                          = B·l / M       else: this many packets are in flight, each of a different flow

In the full variant all switches have state, and the active flows of all hosts may cross one switch. In the
ingress variant a switch stores only the active flows of its hosts, and in the NIC variant a NIC those of its
host. Flowlet and flowcell switching do not detect the end of a flow, so their switches store all f flows of
all hosts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tailrace.codec.layers.local import DataShim, FlowcutAck, LocalHeader, Stamp
from tailrace.codec.layout import HeaderLayout
from tailrace.p4rt.programs import load
from tailrace.papers.document import Curve
from tailrace.papers.model import Panel, PaperFile
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns
from tailrace.spec.units import parse_rate_bps, parse_time_ns

MTU_BYTES = 2048
SWITCH_PORTS = 64
"""Ports of the switches in Fig. 4; a switch is the ingress of at most this many hosts."""

_TIMESTAMP_BYTES, _HOPS_BYTES, _PREAMBLE_BYTES, _FLOW_KEY_BYTES = 2, 1, 1, 13
"""Sizes of the fields in §III-A1: timestamp, hop count with reserved bits, mark of ACKs, 5-tuple."""

_PORT_BYTES, _IN_FLIGHT_BYTES, _AVERAGE_BYTES, _LAST_RTT_BYTES, _GROWTH_BYTES = 1, 3, 2, 2, 2
"""Sizes of the fields in §III-A2: a port number, bytes in flight, average RTT, newest RTT, average growth."""

FAT_TREE_SWITCHES = 5
"""Number of switches on the longest path of a fat tree."""

OVERHEAD_PACKET_BYTES = 1024


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """Extra bytes of a packet on the wire, and bytes of state of a flow; None if there is no such state.

    `state_bytes` is the size of all Flowcut registers of a switch of this project.
    """

    packet_bytes: int
    flow_bytes: int | None = None
    state_bytes: int | None = None


def _flowcut_packet_bytes() -> int:
    """Data packets and ACKs carry timestamp and hop count; all bytes of an ACK are extra."""
    stamp = _TIMESTAMP_BYTES + _HOPS_BYTES
    return stamp + _PREAMBLE_BYTES + _FLOW_KEY_BYTES + stamp


def _flowcut_flow_bytes(ports: int) -> int:
    rtts = _AVERAGE_BYTES + _LAST_RTT_BYTES + _GROWTH_BYTES
    return ports * _PORT_BYTES + _IN_FLIGHT_BYTES + rtts


COSTS: Mapping[str, MemoryCost] = {
    "flowcell": MemoryCost(0, 2),
    "flowlet": MemoryCost(0, 5),
    "full": MemoryCost(_flowcut_packet_bytes(), _flowcut_flow_bytes(ports=2)),
    "ingress": MemoryCost(_flowcut_packet_bytes(), _flowcut_flow_bytes(ports=1)),
    "nic": MemoryCost(_flowcut_packet_bytes(), _flowcut_flow_bytes(ports=1)),
}
"""Table III; the rows of Flowcut are computed from their fields."""


def tailrace_cost(stamps: int) -> MemoryCost:
    """The cost of this project's implementation if `stamps` switches on a path add a stamp to each packet.

    The stamps (time, ingress port, flags) are in a shim between Ethernet and IP. An ACK is a separate
    Ethernet frame with all stamps; each switch that stores the flow reads its stamp.
    """
    stack = [Stamp()] * stamps
    data = bytes(LocalHeader() / DataShim(stack=stack))
    ack = bytes(LocalHeader() / FlowcutAck(stack=stack))
    return MemoryCost(len(data) + HeaderLayout("Ether").size_bytes + len(ack), *_tailrace_state_bytes())


def _tailrace_state_bytes() -> tuple[int, int]:
    """The bytes of a flow table entry, and of all registers of the P4 program flowcut that ecmp lacks.

    Besides entries, the registers contain the history of flows, and state that keeps the order of untracked
    flows and of flows that have left a dead path.
    """
    # register_bits: by register, the number of cells and the width of a cell in bits
    of_ecmp = load("ecmp").register_bits()
    registers = {
        name: shape for name, shape in load("flowcut").register_bits().items() if name not in of_ecmp
    }
    entries, _ = registers["flow_key"]
    bits = sum(width for cells, width in registers.values() if cells == entries)
    return -(-bits // 8), sum(-(-cells * width // 8) for cells, width in registers.values())


def active_flows(flows: int, rate_bps: int, rtt_ns: int) -> Fraction:
    """The number of flows of a host that have a packet in flight (Eq. 1, for one host)."""
    # bits/s * ns / NS_BITS is bytes: the packets in flight in a round trip
    in_flight = Fraction(rate_bps * rtt_ns, NS_BITS * MTU_BYTES)
    return Fraction(flows) if in_flight >= flows else in_flight


def memory_bytes(algorithm: str, hosts: int, flows: int, rate_bps: int, rtt_ns: int) -> Fraction:
    """The maximum size of the state that one switch, or one NIC, stores."""
    cost = COSTS[algorithm]
    assert cost.flow_bytes is not None, "every algorithm of the paper keeps state"
    if algorithm in ("flowcell", "flowlet"):
        return Fraction(hosts * flows * cost.flow_bytes)
    stored_hosts = {"full": hosts, "ingress": min(hosts, SWITCH_PORTS), "nic": 1}[algorithm]
    return stored_hosts * active_flows(flows, rate_bps, rtt_ns) * cost.flow_bytes


def curves_of(panel: Panel) -> Iterator[Curve]:
    """A line for every combination of a panel's parameters: bytes of memory by flows per host.

    The label omits parameters with a single value.
    """
    for algorithm in panel.algorithms:
        ranges = {"hosts": panel.hosts, "rate": panel.rate, "rtt": panel.rtt}
        for hosts, rate, rtt in itertools.product(panel.hosts, panel.rate, panel.rtt):
            point = zip(ranges.items(), (hosts, rate, rtt), strict=True)
            varied = [f"{name}={value}" for (name, values), value in point if len(values) > 1]
            rate_bps, rtt_ns = parse_rate_bps(rate), parse_time_ns(rtt)
            sizes = [float(memory_bytes(algorithm, hosts, flows, rate_bps, rtt_ns)) for flows in panel.flows]
            label = " ".join([algorithm, *varied])
            yield Curve(panel.name, label, tuple(map(float, panel.flows)), tuple(sizes))


def memory_values(file: PaperFile) -> tuple[dict[tuple[str, str], dict[str, float]], tuple[Curve, ...]]:
    """By panel and label, the metric `memory`, which is the maximum of a curve; and the curves."""
    curves = tuple(curve for panel in file.panel for curve in curves_of(panel))
    return {(curve.panel, curve.label): {"memory": max(curve.y)} for curve in curves}, curves


def occupancy_values() -> dict[tuple[str, str], dict[str, float]]:
    """The values of Table III, and the corresponding values of this project's implementation."""
    occupancy = {}
    ours = {"tailrace ingress": tailrace_cost(1), "tailrace full": tailrace_cost(FAT_TREE_SWITCHES)}
    for label, cost in {**COSTS, **ours}.items():
        values = {
            "packet_bytes": float(cost.packet_bytes),
            "overhead": cost.packet_bytes / OVERHEAD_PACKET_BYTES,
        }
        if cost.flow_bytes is not None:
            values["flow_bytes"] = float(cost.flow_bytes)
        if cost.state_bytes is not None:
            values["memory"] = float(cost.state_bytes)
        occupancy["", label] = values
    return occupancy
