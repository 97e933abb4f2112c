# SPDX-License-Identifier: Apache-2.0
"""Observations of a flow at its source and at its destination, and their merger into one record.

Once a flow is complete, its NIC stores only the observation. Observations are therefore small. The garbage
collector does not track them (gc=False), since they cannot form reference cycles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

import msgspec

from tailrace.hosts.flows.flow import FlowRecord, FlowSpec

NO_TAG: Final = -1
"""The path tag if no packet has arrived. A path tag is a number in a packet that differs between paths
(hosts.nic.order).
"""


class SenderObservation(msgspec.Struct, frozen=True, gc=False):
    """The observation at the source; the defaults are the values of a flow that has not started.

    start_ns: when the source was first allowed to send.
    done: whether every byte has been acknowledged.
    packets: data packets sent, retransmissions included.
    retransmitted: retransmissions among `packets`.
    drains: number of times that a switch's pause frame or a drain by Flowcut on the NIC stopped the flow.
    drained_ns: total duration of these pauses and drains.
    reroutes: number of times that Flowcut on the NIC changed the source port, and thereby the path.
    pause_timeouts: pauses and drains that a timeout ended (Flowcut §IV-A).
    timeouts: number of retransmission timeouts.
    congestion_notifications: number of CNPs received.
    nacks: NACKs received for trimmed packets.
    explored, reused, blocked: counters of the NIC algorithm that chooses paths, see `hosts.steering.base`.
    stretched, stretched_ns, natural: counters of gaps between packets, see `hosts.gaps.hf2t.Shaper`.
    rtts_from_ns: if the NIC does Flowcut, the end of the last drain: NIC ACKs (hosts.nic.nic_acks) of packets
        sent before this time give no RTT sample; otherwise 0.
    """

    flow: FlowSpec
    start_ns: int
    done: bool = False
    packets: int = 0
    retransmitted: int = 0
    drains: int = 0
    drained_ns: int = 0
    reroutes: int = 0
    pause_timeouts: int = 0
    timeouts: int = 0
    congestion_notifications: int = 0
    nacks: int = 0
    explored: int = 0
    reused: int = 0
    blocked: int = 0
    stretched: int = 0
    stretched_ns: int = 0
    natural: int = 0
    rtts_from_ns: int = 0


class ReceiverObservation(msgspec.Struct, frozen=True, gc=False):
    """The observation at the destination; the defaults are the values before the first packet arrives.

    hosts.nic.order defines the counters of reordering: out_of_order, overtaken, ood_max and path_changes.

    end_ns: when every byte had arrived in order; None: not yet.
    packets: data packets that arrived, duplicates and retransmissions included.
    bytes: payload received, without duplicates.
    first_received: first transmissions among `packets`.
    out_of_order_raw: arrivals with another PSN than the transport expected, for any reason.
    out_of_sequence: arrivals with a larger PSN than the transport expected.
    ce_marked: arrivals with an ECN mark (CE).
    trimmed: arrivals without their payload, not counted in `packets`.
    cnps_sent: number of CNPs sent.
    tag: path tag of packet `highest`; NO_TAG: there is no such packet.
    highest: greatest index of a packet that arrived as a first transmission; -1: none has arrived.
    """

    flow: FlowSpec
    end_ns: int | None = None
    packets: int = 0
    bytes: int = 0
    first_received: int = 0
    out_of_order: int = 0
    out_of_order_raw: int = 0
    overtaken: int = 0
    ood_max: int = 0
    out_of_sequence: int = 0
    path_changes: int = 0
    ce_marked: int = 0
    trimmed: int = 0
    cnps_sent: int = 0
    tag: int = NO_TAG
    highest: int = -1


Observation = SenderObservation | ReceiverObservation


def merge(observations: Iterable[Observation]) -> list[FlowRecord]:
    """One record for each flow that was observed at its source, sorted by flow id.

    A flow that was not observed at its destination counts as not complete.
    """
    senders: list[SenderObservation] = []
    receivers: dict[int, ReceiverObservation] = {}
    for observation in observations:
        if isinstance(observation, SenderObservation):
            senders.append(observation)
        else:
            receivers[observation.flow.id] = observation
    return [
        _record(sender, receivers.get(sender.flow.id))
        for sender in sorted(senders, key=lambda sender: sender.flow.id)
    ]


def _shared(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of an observation that FlowRecord has under the same name, with the same meaning."""
    return tuple(item.name for item in fields(FlowRecord) if item.name in kind.__struct_fields__)


_OF_SENDER = _shared(SenderObservation)
_OF_RECEIVER = tuple(name for name in _shared(ReceiverObservation) if name not in ("packets", "bytes"))


def _record(sender: SenderObservation, receiver: ReceiverObservation | None) -> FlowRecord:
    flow = sender.flow
    receiver = receiver or ReceiverObservation(flow)
    return FlowRecord(
        id=flow.id,
        src=flow.src,
        dst=flow.dst,
        bytes=flow.bytes,
        received=receiver.packets,
        cnps_received=sender.congestion_notifications,
        **{name: getattr(sender, name) for name in _OF_SENDER},
        **{name: getattr(receiver, name) for name in _OF_RECEIVER},
    )
