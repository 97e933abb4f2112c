# SPDX-License-Identifier: Apache-2.0
"""What the two ends of a flow have seen of it, and how that becomes one record.

It is also all that is left of either end when the flow has ended, so it is small: numbers only, which the
cycle collector need not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tailrace.hosts.flows.flow import FlowRecord, FlowSpec

NO_TAG: Final = -1
"""The path tag of a packet that has not come."""


class SenderObservation(msgspec.Struct, frozen=True, gc=False):
    """Seen at the source; by itself of a flow that has not started.

    start_ns: when it might send its first packet, or might have at the earliest.
    done: everything has been acknowledged.
    packets: data packets sent, retransmissions included.
    drains, drained_ns: pauses by switches and drains of the NIC's own Flowcut.
    reroutes: times the NIC's own Flowcut changed the source port.
    pause_timeouts: pauses and drains that ended by their timeout (Flowcut §IV-A).
    timeouts: retransmission timeouts.
    congestion_notifications: CNPs received.
    nacks: answers that told of a trimmed packet.
    explored, reused, blocked: of its steering, see `hosts.steering.base`.
    stretched, stretched_ns, natural: of its gaps, see `hosts.gaps.hf2t.Shaper`.
    rtts_from_ns: NIC ACKs of packets that were sent before tell no round-trip time of its present path.
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
    """Seen at the destination; by itself of a flow of which nothing has arrived. How packets are counted as
    out of order stands in hosts.nic.order.

    end_ns: when every byte was there in order; None: not yet.
    packets: data packets that arrived, duplicates and retransmissions included.
    bytes: payload taken, each byte once.
    first_received: first transmissions among them.
    out_of_order_raw: arrivals with another PSN than the transport expects, for whatever reason.
    out_of_sequence: those of them with a larger PSN.
    ce_marked: arrivals marked by ECN.
    trimmed: arrivals without their payload, not among `packets`.
    cnps_sent: CNPs sent.
    highest: the greatest number of a packet that arrived as a first transmission; -1: none did.
    tag: its path tag; NO_TAG: none did.
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
    """One record for each flow that a source has told of, by flow number.

    A flow whose receiver has told nothing counts as not finished.
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


def _record(sender: SenderObservation, receiver: ReceiverObservation | None) -> FlowRecord:
    flow = sender.flow
    return FlowRecord(
        id=flow.id,
        src=flow.src,
        dst=flow.dst,
        bytes=flow.bytes,
        start_ns=sender.start_ns,
        end_ns=receiver.end_ns if receiver else None,
        packets=sender.packets,
        retransmitted=sender.retransmitted,
        out_of_order=receiver.out_of_order if receiver else 0,
        ood_max=receiver.ood_max if receiver else 0,
        path_changes=receiver.path_changes if receiver else 0,
        drains=sender.drains,
        drained_ns=sender.drained_ns,
        received=receiver.packets if receiver else 0,
        first_received=receiver.first_received if receiver else 0,
        out_of_order_raw=receiver.out_of_order_raw if receiver else 0,
        overtaken=receiver.overtaken if receiver else 0,
        timeouts=sender.timeouts,
        ce_marked=receiver.ce_marked if receiver else 0,
        trimmed=receiver.trimmed if receiver else 0,
        nacks=sender.nacks,
        explored=sender.explored,
        reused=sender.reused,
        blocked=sender.blocked,
        out_of_sequence=receiver.out_of_sequence if receiver else 0,
        cnps_sent=receiver.cnps_sent if receiver else 0,
        cnps_received=sender.congestion_notifications,
        stretched=sender.stretched,
        stretched_ns=sender.stretched_ns,
        natural=sender.natural,
    )
