# SPDX-License-Identifier: Apache-2.0
"""A flow to be sent, and the record of what happened to it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tailrace.codec.calls import PORT_MASK, QPN_MASK
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.options.nic import algorithms
from tailrace.spec.constants import MAX_FLOW_BYTES

MAX_START_NS = 1 << 60


class FlowSpec(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A flow: one message of one queue pair. Objects are small, since a run may have a million flows.

    id: number of the flow, unique in a run.
    src, dst: IPv4 addresses in dotted form, of two different hosts.
    bytes: length of the message, 1..2^32-1.
    start_ns: the earliest time at which the source may send the first packet.
    qpn: queue pair number, 24 bits, the same at both ends; unique for a pair of hosts.
    sport: UDP source port, 1..65535.
    after: ids of other flows that must be complete at this flow's source host before this flow starts: flows
        that the host sends must be acknowledged, flows that it receives must have arrived. Checked by
        `hosts.flows.dependencies`.
    after_ns: time that must pass since the completion of each flow in `after`, such as that of a computation;
        empty: 0.
    after_count: number of flows in `after` whose completion suffices; 0: all.
    steering: algorithm (see SteeringConfig) that chooses this flow's paths in place of the NIC's algorithm;
        "": the NIC's algorithm. With an algorithm given here, packets carry a DSCP by which switches forward
        them along the chosen paths.
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
    after_ns: tuple[int, ...] = ()
    after_count: int = 0

    def __post_init__(self) -> None:
        """Raises ConfigError on values that do not fit into packets."""
        # one quick test of all values; `_refuse` finds the invalid value
        if not (
            1 <= self.bytes <= MAX_FLOW_BYTES
            and 0 <= self.start_ns <= MAX_START_NS
            and 0 <= self.qpn <= QPN_MASK
            and 1 <= self.sport <= PORT_MASK
        ):
            self._refuse()
        if self.after_ns and (len(self.after_ns) != len(self.after) or min(self.after_ns) < 0):
            raise ConfigError(f"flow {self.id}: expected after_ns for each of `after`, found {self.after_ns}")
        if self.after_count and not (0 < self.after_count <= len(set(self.after)) and not self.after_ns):
            expected = "from 0 to the number of flows in `after`, without after_ns"
            raise ConfigError(f"flow {self.id}: after_count is {self.after_count}, expected {expected}")
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

    start_ns: when the source was first allowed to send: FlowSpec.start_ns, or, if later, the time at which
        the flows of FlowSpec.after were complete there and FlowSpec.after_ns had passed.
    end_ns: when the receiving NIC had every byte in order; None: never.
    packets: data packets sent, retransmissions included.
    retransmitted: retransmissions among `packets`.
    out_of_order: see hosts.nic.order.
    ood_max: greatest out-of-order degree, in packets, see hosts.nic.order.
    path_changes: number of times that consecutive packets took different paths, see hosts.nic.order.
    drains: number of times the flow was paused so that it might change its path.
    drained_ns: total time for which the flow was paused.
    received: data packets that arrived at the receiver, duplicates included.
    first_received: first transmissions among `received`.
    out_of_order_raw: arrivals whose PSN was not the PSN that the receiver's transport expected, for any
        reason, losses and retransmissions included (Flowcut §III-C2, Spritz Fig. 6).
    overtaken: first transmissions that arrived after a later packet; 0 if the order is kept.
    timeouts: number of retransmission timeouts.
    ce_marked: data packets that arrived with an ECN mark (CE).
    trimmed: data packets that arrived without their payload; not counted in `received`.
    nacks: NACKs for trimmed packets that the source received.
    explored: packets whose path was drawn at random (Spritz §IV).
    reused: packets on a path that had proved good, or on the flow's current path.
    blocked: number of times a path was blocked after a timeout.
    out_of_sequence: arrivals with a larger PSN than the receiver expected, even if the expected packet was
        lost.
    cnps_sent, cnps_received: CNPs (congestion notification packets) that the receiver sent, and that the
        source received.
    stretched: gaps between the flow's packets that the NIC stretched, that is, held the next packet, so that
        switches see a new flowlet (HF2T §4, hosts.gaps.hf2t).
    stretched_ns: total time by which gaps were stretched.
    natural: gaps longer than the flowlet threshold without stretching; 0 if the NIC stretches no gaps.
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
