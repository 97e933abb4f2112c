# SPDX-License-Identifier: Apache-2.0
"""What Flowcut costs in bytes: the packets' extra bytes, the state of a flow, and how many flows have state.

Exact arithmetic after Flowcut §III-A. A flow has state while it has a packet in flight; if the f flows of a
host share its rate B and a round trip takes l, then with packets of M bytes (Eq. 1)

    active flows a host = f             where B·l / (f·M) >= 1: each flow has a packet in flight
                        = B·l / M       else: that many packets are in flight, each of another flow

The full variant may have to hold the flows of all hosts, the ingress variant those of its own hosts, a NIC
its own. Flowlet and flowcell switching know no end of a flow, so they hold all f flows of all hosts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from scapy.layers.l2 import Ether

from tailrace.codec.layers.data_shim import DataShim, Stamp
from tailrace.codec.layers.flowcut_ack import FlowcutAck
from tailrace.codec.layers.local import LocalHeader
from tailrace.codec.layout import HeaderLayout
from tailrace.p4rt.programs import load
from tailrace.papers.document import Curve
from tailrace.papers.model import Panel, PaperFile
from tailrace.spec.constants import NS_BITS
from tailrace.spec.units import parse_rate_bps, parse_time_ns

MTU_BYTES = 2048
SWITCH_PORTS = 64
"""Of the switches in Fig. 4: a switch is the ingress of as many hosts at most."""

_TIMESTAMP_BYTES, _HOPS_BYTES, _PREAMBLE_BYTES, _FLOW_KEY_BYTES = 2, 1, 1, 13
"""§III-A1: hop count with its reserved bits; the byte that tells an ACK from data; the 5-tuple."""

_PORT_BYTES, _IN_FLIGHT_BYTES, _AVERAGE_BYTES, _LAST_RTT_BYTES, _GROWTH_BYTES = 1, 3, 2, 2, 2
"""§III-A2: a port number each, bytes in flight, the two averages and the newest RTT."""

FAT_TREE_SWITCHES = 5
"""On the longest path of a fat tree."""

OVERHEAD_PACKET_BYTES = 1024


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """Extra bytes of a packet on the wire, and of a flow in memory; None where nobody keeps any.

    `state_bytes`: of all that a switch of ours keeps for as many flows as it has room for.
    """

    packet_bytes: int
    flow_bytes: int | None = None
    state_bytes: int | None = None


def _flowcut_packet_bytes() -> int:
    """Both the data packet and its ACK carry time and hops; the ACK is nothing but extra."""
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
"""Table III, the Flowcut rows summed up from their fields."""


def tailrace_cost(stamps: int) -> MemoryCost:
    """What our own packets carry more where so many switches put their stamp on them.

    An ACK is an Ethernet frame of its own, and each switch that holds the flow finds its own stamp in it.
    """
    stack = [Stamp()] * stamps
    data = bytes(LocalHeader() / DataShim(stack=stack))
    ack = bytes(LocalHeader() / FlowcutAck(stack=stack))
    return MemoryCost(len(data) + HeaderLayout(Ether).size_bytes + len(ack), *_tailrace_state_bytes())


def _tailrace_state_bytes() -> tuple[int, int]:
    """Of an entry of the flow table, and of all registers that a switch has for Flowcut and not for ECMP.

    Beside the entries these are the history of flows, what keeps untracked flows in order, and what keeps the
    order of flows that left a dead path.
    """
    of_ecmp = load("ecmp").register_bits()
    registers = {name: of for name, of in load("flowcut").register_bits().items() if name not in of_ecmp}
    entries, _ = registers["flow_key"]
    bits = sum(width for cells, width in registers.values() if cells == entries)
    return -(-bits // 8), sum(-(-cells * width // 8) for cells, width in registers.values())


def active_flows(flows: int, rate_bps: int, rtt_ns: int) -> Fraction:
    """Flows of a host that have a packet in flight (Eq. 1, for one host)."""
    in_flight = Fraction(rate_bps * rtt_ns, NS_BITS * MTU_BYTES)
    return Fraction(flows) if in_flight >= flows else in_flight


def memory_bytes(algorithm: str, hosts: int, flows: int, rate_bps: int, rtt_ns: int) -> Fraction:
    """State that one switch, or one NIC, has to hold at most."""
    cost = COSTS[algorithm]
    assert cost.flow_bytes is not None, "every algorithm of the paper keeps state"
    if algorithm in ("flowcell", "flowlet"):
        return Fraction(hosts * flows * cost.flow_bytes)
    holders = {"full": hosts, "ingress": min(hosts, SWITCH_PORTS), "nic": 1}[algorithm]
    return holders * active_flows(flows, rate_bps, rtt_ns) * cost.flow_bytes


def curves_of(panel: Panel) -> Iterator[Curve]:
    """A line for every combination of a panel's parameters: bytes of memory by flows a host.

    What has one value only is not named in the label.
    """
    for algorithm in panel.algorithms:
        for hosts, rate, rtt in itertools.product(panel.hosts, panel.rate, panel.rtt):
            varied = [
                f"{name}={value}"
                for name, value, values in (
                    ("hosts", hosts, panel.hosts),
                    ("rate", rate, panel.rate),
                    ("rtt", rtt, panel.rtt),
                )
                if len(values) > 1
            ]
            rate_bps, rtt_ns = parse_rate_bps(rate), parse_time_ns(rtt)
            sizes = [float(memory_bytes(algorithm, hosts, flows, rate_bps, rtt_ns)) for flows in panel.flows]
            label = " ".join([algorithm, *varied])
            yield Curve(panel.name, label, tuple(map(float, panel.flows)), tuple(sizes))


def memory_values(file: PaperFile) -> tuple[dict[tuple[str, str], dict[str, float]], tuple[Curve, ...]]:
    """The `memory` metric by panel and line, the most that any number of flows needs; and the lines."""
    curves = tuple(curve for panel in file.panel for curve in curves_of(panel))
    return {(curve.panel, curve.label): {"memory": max(curve.y)} for curve in curves}, curves


def occupancy_values() -> dict[tuple[str, str], dict[str, float]]:
    """Table III, and what our own format needs."""
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
