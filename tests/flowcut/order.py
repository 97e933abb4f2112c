# SPDX-License-Identifier: Apache-2.0
"""The order check: no packet overtakes another one of its flow, seen by taps at the hosts' wires.

What a receiver gets of a flow must be a subsequence of what the sender sent, retransmissions included. The check
reads flow and packet off the frames itself and knows nothing of what NICs count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tailrace.sim.network import Network, Wire, WireEvent
from tests.flowcut.frames import Key, Kind, parse

Identify = Callable[[bytes, int], "tuple[object, object, int] | None"]
"""(flow, packet, bytes) of a data frame; None: not data. Copies of a packet are equal."""


def scripted(frame: bytes, virtual_bytes: int) -> tuple[Key, int, int] | None:
    """Packets of tests.flowcut.sources."""
    parsed = parse(frame, virtual_bytes)
    return (parsed.key, parsed.packet, parsed.nbytes) if parsed.kind is Kind.DATA else None


@dataclass
class _Flow:
    sent: list[object] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    arrived: list[object] = field(default_factory=list)


class OrderCheck:
    """Looks at every data packet that a host sends and receives."""

    def __init__(self, network: Network, identify: Identify = scripted) -> None:
        self._identify = identify
        self._hosts = {host.name for host in network.topology.hosts}
        self.flows: defaultdict[object, _Flow] = defaultdict(_Flow)
        network.tap(self._tap, [w for w in network.wires if {w.source.node, w.target.node} & self._hosts])

    def _tap(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        sends = event is WireEvent.SENT and wire.source.node in self._hosts
        receives = event is WireEvent.RECEIVED and wire.target.node in self._hosts
        if not (sends or receives):
            return
        identity = self._identify(frame, virtual_bytes)
        if identity is None:
            return
        key, packet, nbytes = identity
        flow = self.flows[key]
        if sends:
            flow.sent.append(packet)
            flow.sizes.append(nbytes)
        else:
            flow.arrived.append(packet)

    def overtaken(self) -> list[str]:
        """A line for each flow whose arrivals are no subsequence of what was sent."""
        lines = []
        for key, flow in self.flows.items():
            sent = iter(flow.sent)
            for number, packet in enumerate(flow.arrived):
                if packet not in sent:  # consumes what comes before it
                    lines.append(
                        f"{key}: arrival {number}, {packet}, was overtaken: {flow.arrived[: number + 1][-5:]}"
                    )
                    break
        return lines

    def displaced_bytes(self) -> int:
        """The most bytes of earlier packets that arrived behind a later one of their flow; packets differ."""
        most = 0
        for flow in self.flows.values():
            place = {packet: number for number, packet in enumerate(flow.sent)}
            order = [place[packet] for packet in flow.arrived]
            for at, number in enumerate(order):
                most = max(most, sum(flow.sizes[later] for later in order[at + 1 :] if later < number))
        return most

    def delivered(self) -> bool:
        """Whether every packet that was sent arrived, once."""
        return all(sorted(map(repr, f.sent)) == sorted(map(repr, f.arrived)) for f in self.flows.values())
