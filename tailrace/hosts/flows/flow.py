# SPDX-License-Identifier: Apache-2.0
"""A flow to be sent, and what is known about it in the end."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tailrace.codec.calls import PORT_MASK, QPN_MASK
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.options.nic import algorithms

MAX_FLOW_BYTES = (1 << 32) - 1  # the RETH's length field
MAX_START_NS = 1 << 60


class FlowSpec(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One message of one queue pair. A run may have a million of them, so they are small.

    id: number of the flow, unique in a run.
    src, dst: IPv4 addresses in dotted form, of two different hosts.
    bytes: length of the message, 1..2^32-1.
    start_ns: when the source may send its first packet, at the earliest.
    qpn: queue pair number, 24 bits, the same at both ends; unique for a pair of hosts.
    sport: UDP source port, 1..65535.
    after: numbers of other flows that must be complete at this flow's source first: flows that it sends,
        acknowledged, and flows that it receives, arrived. `hosts.flows.dependencies` checks them.
    steering: algorithm of SteeringConfig that chooses this flow's paths instead of the NIC's own; "":
        that one. Such a flow's packets are steered whatever the network does with others.
    """

    id: int
    src: str
    dst: str
    bytes: int
    start_ns: int
    qpn: int
    sport: int
    after: tuple[int, ...] = ()
    steering: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError on values that no packet could carry."""
        # what is right is looked at once, and quickly
        if not (
            1 <= self.bytes <= MAX_FLOW_BYTES
            and 0 <= self.start_ns <= MAX_START_NS
            and 0 <= self.qpn <= QPN_MASK
            and 1 <= self.sport <= PORT_MASK
        ):
            self._refuse()
        if self.id in self.after:
            raise ConfigError(f"flow {self.id}: it comes after itself")
        if self.steering and self.steering not in algorithms():
            expected = ", ".join(algorithms())
            raise ConfigError(f"flow {self.id}: steering is {self.steering!r}, expected {expected}")
        if self.src == self.dst:
            raise ConfigError(f"flow {self.id}: source and destination are both {self.src}")

    def _refuse(self) -> None:
        limits = (
            ("bytes", self.bytes, 1, MAX_FLOW_BYTES),
            ("start_ns", self.start_ns, 0, MAX_START_NS),
            ("qpn", self.qpn, 0, QPN_MASK),
            ("sport", self.sport, 1, PORT_MASK),
        )
        for name, value, low, high in limits:
            if not low <= value <= high:
                raise ConfigError(f"flow {self.id}: {name} is {value}, expected {low}..{high}")


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """What happened to a flow: one row of flows.parquet, before ideal times are added.

    start_ns: when the source might send its first packet: FlowSpec.start_ns, or the moment when the last
        of the flows that it comes after was complete there.
    end_ns: when the receiving NIC had every byte in order; None: it never had.
    packets: data packets sent, retransmissions included.
    retransmitted: those of them that were retransmissions.
    out_of_order: see hosts.nic.order.
    ood_max: greatest out-of-order degree, in packets (Flowcut §IV-C).
    path_changes: first transmissions whose path tag differs from that of the one sent before, see there.
    drains: times the flow was stopped so that it might change its path.
    drained_ns: time it was stopped, in all.
    received: data packets that arrived at the receiver, duplicates included.
    first_received: first transmissions among them.
    out_of_order_raw: those of all of them whose PSN was not the one that the receiver's transport expected,
        whatever was lost or retransmitted (Flowcut §III-C2, Spritz Fig. 6).
    overtaken: first transmissions that arrived after a later one; 0 where the order is kept.
    timeouts: retransmission timeouts.
    ce_marked: data packets that arrived marked by ECN.
    trimmed: data packets that arrived without their payload; not among the received ones.
    nacks: NACKs for such packets at the source.
    explored, reused: packets whose path was drawn, and those on a path known to be good (Spritz §IV).
    blocked: times a path was blocked after a timeout.
    out_of_sequence: arrivals beyond the one that the receiver expects next, also where that was lost.
    cnps_sent, cnps_received: CNPs that the receiver sent, and that the source got.
    stretched: gaps between its packets that the NIC stretched (HF2T §4).
    stretched_ns: by how much, in all.
    natural: gaps longer than the flowlet threshold by themselves; 0 where the NIC stretches none.
    """

    id: int
    src: str
    dst: str
    bytes: int
    start_ns: int
    end_ns: int | None
    packets: int
    retransmitted: int
    out_of_order: int
    ood_max: int
    path_changes: int
    drains: int
    drained_ns: int
    received: int = 0
    first_received: int = 0
    out_of_order_raw: int = 0
    overtaken: int = 0
    timeouts: int = 0
    ce_marked: int = 0
    trimmed: int = 0
    nacks: int = 0
    explored: int = 0
    reused: int = 0
    blocked: int = 0
    out_of_sequence: int = 0
    cnps_sent: int = 0
    cnps_received: int = 0
    stretched: int = 0
    stretched_ns: int = 0
    natural: int = 0
