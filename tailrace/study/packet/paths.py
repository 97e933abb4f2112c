# SPDX-License-Identifier: Apache-2.0
"""Assigns the wire transits of a flow to the transmissions of its packets; a wire is one direction of a
link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.sim.network.transits import Fate, WireTransit
from tailrace.study.packet.headers import RoceHeader, header_of


@dataclass(slots=True)
class WirePath:
    """A transmission of a packet, and its wire transits in order."""

    header: RoceHeader
    transits: list[WireTransit] = field(default_factory=list)

    @property
    def sent_ps(self) -> int:
        return self.transits[0].sent_ps

    @property
    def path(self) -> tuple[str, ...]:
        """The nodes that the transmission reached, starting with the source."""
        reached = [transit.wire.target.node for transit in self.transits if transit.fate is Fate.RECEIVED]
        return (self.transits[0].wire.source.node, *reached)

    def delivered_ps(self, host: str) -> int | None:
        """The time when the packet was delivered to a host untrimmed; None if that did not happen."""
        last = self.transits[-1]
        # virtual_bytes: payload that counts in lengths but is not stored; a switch that trims removes it
        untrimmed = last.virtual_bytes == self.transits[0].virtual_bytes
        received = last.fate is Fate.RECEIVED and last.wire.target.node == host
        return last.ended_ps if received and untrimmed else None


def wire_paths(transits: Iterable[WireTransit], flow: FlowSpec, source: str) -> dict[int, list[WirePath]]:
    """The transmissions of a flow's data packets, by PSN and in the order of sending.

    If a switch has two transmissions of one packet, they are assumed to leave in the order of their arrival.

    Args:
        transits: the frames' transits of wires, in the order of sending.
        source: the name of the host with the address `flow.src`.
    """
    by_psn: dict[int, list[WirePath]] = {}
    for transit in transits:
        header = header_of(transit)
        if header is None or not header.is_data:
            continue
        if (header.src, header.dst, header.qpn) != (flow.src, flow.dst, flow.qpn):
            continue
        of_psn = by_psn.setdefault(header.psn, [])
        if transit.wire.source.node == source:
            of_psn.append(WirePath(header, [transit]))
            continue
        waiting = [sent for sent in of_psn if _waits(sent, transit, header)]
        if waiting:
            min(waiting, key=lambda sent: sent.transits[-1].ended_ps or 0).transits.append(transit)
    return by_psn


def _waits(transmission: WirePath, transit: WireTransit, header: RoceHeader) -> bool:
    """Whether a transmission is in the switch that sends `transit`, so that both may be the same packet."""
    last = transmission.transits[-1]
    return (
        last.fate is Fate.RECEIVED
        and last.wire.target.node == transit.wire.source.node
        and (last.ended_ps or 0) <= transit.sent_ps
        and transmission.header.retransmitted == header.retransmitted
    )


def overtakers(
    transmission: WirePath, of_flow: dict[int, list[WirePath]], host: str
) -> list[tuple[int, WirePath]]:
    """Transmissions of the flow that were sent later and delivered to a host earlier, each with its PSN; none
    if `transmission` was not delivered.
    """
    delivered_ps = transmission.delivered_ps(host)
    overtaking: list[tuple[int, WirePath]] = []
    if delivered_ps is None:
        return overtaking
    for psn, sent in of_flow.items():
        for other in sent:
            other_ps = other.delivered_ps(host)
            if other_ps is not None and other_ps < delivered_ps and other.sent_ps > transmission.sent_ps:
                overtaking.append((psn, other))
    return sorted(overtaking, key=lambda pair: (pair[1].sent_ps, pair[0]))
