# SPDX-License-Identifier: Apache-2.0
"""A flow to be sent, and what is known about it in the end."""

from __future__ import annotations

from dataclasses import dataclass

from hosts.errors import ConfigError
from hosts.packets.bth import PSN_MASK

MAX_FLOW_BYTES = (1 << 32) - 1  # the RETH's length field


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One message of one queue pair.

    Args:
        id: number of the flow, unique in a run.
        src, dst: IPv4 addresses in dotted form, of two different hosts.
        bytes: length of the message, 1..2^32-1.
        start_ns: when the source may send its first packet.
        qpn: queue pair number, 24 bits, the same at both ends; unique for a pair of hosts.
        sport: UDP source port, 1..65535.
    """

    id: int
    src: str
    dst: str
    bytes: int
    start_ns: int
    qpn: int
    sport: int

    def __post_init__(self) -> None:
        """Raises ConfigError on values that no packet could carry."""
        limits = (
            ("bytes", self.bytes, 1, MAX_FLOW_BYTES),
            ("start_ns", self.start_ns, 0, 1 << 62),
            ("qpn", self.qpn, 0, PSN_MASK),
            ("sport", self.sport, 1, 0xFFFF),
        )
        for name, value, low, high in limits:
            if not low <= value <= high:
                raise ConfigError(f"flow {self.id}: {name} is {value}, expected {low}..{high}")
        if self.src == self.dst:
            raise ConfigError(f"flow {self.id}: source and destination are both {self.src}")


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """What happened to a flow: one row of flows.parquet, before ideal times are added.

    Args:
        end_ns: when the receiving NIC had every byte in order; None: it never had.
        packets: data packets sent, retransmissions included.
        retransmitted: those of them that were retransmissions.
        out_of_order: see hosts.order.
        ood_max: greatest out-of-order degree, in packets (Flowcut §IV-C).
        path_changes: consecutive arrivals whose path tags differ.
        drains: times the flow was stopped so that it might change its path.
        drained_ns: time it was stopped, in all.
        received: data packets that arrived at the receiver, duplicates included.
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
