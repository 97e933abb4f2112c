# SPDX-License-Identifier: Apache-2.0
"""From crossings of wires to journeys: which crossings are one packet's, from its source on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.sim.network.transits import Fate, WireTransit
from tailrace.study.packet.headers import Header, of_leg


@dataclass(slots=True)
class Journey:
    """A transmission of a packet, and the wires that it crossed, in order."""

    header: Header
    legs: list[WireTransit] = field(default_factory=list)

    @property
    def sent_ps(self) -> int:
        return self.legs[0].sent_ps

    @property
    def path(self) -> tuple[str, ...]:
        """The nodes, from the source on, as far as it came."""
        reached = [leg.wire.target.node for leg in self.legs if leg.fate is Fate.RECEIVED]
        return (self.legs[0].wire.source.node, *reached)

    def delivered_ps(self, host: str) -> int | None:
        """When it came to a host whole; None: it did not."""
        last = self.legs[-1]
        whole = last.virtual_bytes == self.legs[0].virtual_bytes
        there = last.fate is Fate.RECEIVED and last.wire.target.node == host
        return last.ended_ps if there and whole else None


def journeys(legs: Iterable[WireTransit], flow: FlowSpec, source: str) -> dict[int, list[Journey]]:
    """The journeys of a flow's data packets, by PSN and in the order of sending.

    In a switch two transmissions of one packet are told apart by their order: what came first leaves first.

    Args:
        legs: by the time of sending.
        source: the host of `flow.src`.
    """
    found: dict[int, list[Journey]] = {}
    for leg in legs:
        header = of_leg(leg)
        if header is None or not header.is_data:
            continue
        if (header.src, header.dst, header.qpn) != (flow.src, flow.dst, flow.qpn):
            continue
        of_psn = found.setdefault(header.psn, [])
        if leg.wire.source.node == source:
            of_psn.append(Journey(header, [leg]))
            continue
        waiting = [one for one in of_psn if _waits(one, leg, header)]
        if waiting:
            min(waiting, key=lambda one: one.legs[-1].ended_ps or 0).legs.append(leg)
    return found


def _waits(journey: Journey, leg: WireTransit, header: Header) -> bool:
    """Whether a journey is in the switch that sends such a packet."""
    last = journey.legs[-1]
    return (
        last.fate is Fate.RECEIVED
        and last.wire.target.node == leg.wire.source.node
        and (last.ended_ps or 0) <= leg.sent_ps
        and journey.header.again == header.again
    )


def overtakers(journey: Journey, of_flow: dict[int, list[Journey]], host: str) -> list[tuple[int, Journey]]:
    """Packets of the flow that were sent later and came to a host earlier, each with its PSN; none where the
    packet itself did not come.
    """
    came_ps = journey.delivered_ps(host)
    found: list[tuple[int, Journey]] = []
    if came_ps is None:
        return found
    for psn, sent in of_flow.items():
        for other in sent:
            other_ps = other.delivered_ps(host)
            if other_ps is not None and other_ps < came_ps and other.sent_ps > journey.sent_ps:
                found.append((psn, other))
    return sorted(found, key=lambda one: (one[1].sent_ps, one[0]))
