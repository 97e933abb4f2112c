# SPDX-License-Identifier: Apache-2.0
"""The ways that data packets take through a virtual Dragonfly, read off every wire."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.topology import Topology
from tests.flowcut.frames import ETHERTYPE_TAILRACE, Key, Kind, Parsed, parse

DETOUR, DETOUR_BYTES = 6, 5
_TYPE_AT, _TYPE_BYTES = 12, 2


def peel(frame: bytes) -> tuple[int, bytes]:
    """The group of a frame's detour, 0 where it has none, and the frame without that header."""
    at = _TYPE_AT + _TYPE_BYTES
    if int.from_bytes(frame[_TYPE_AT:at], "big") != ETHERTYPE_TAILRACE or frame[at] != DETOUR:
        return 0, frame
    group, next_type = frame[at + 1 : at + 3], frame[at + 3 : at + DETOUR_BYTES]
    return int.from_bytes(group, "big"), frame[:_TYPE_AT] + next_type + frame[at + DETOUR_BYTES :]


@dataclass
class Way:
    """Of one packet: the switches in their order, and the detour that it had on each link between them."""

    switches: list[str] = field(default_factory=list)
    detours: list[int] = field(default_factory=list)
    host: str = ""

    def groups(self, topology: Topology) -> list[int]:
        """The groups that it goes through, each once a visit."""
        visited: list[int] = []
        for name in self.switches:
            group = topology.switch(name).group
            if not visited or visited[-1] != group:
                visited.append(group)
        return visited

    def links(self, topology: Topology) -> tuple[int, int]:
        """Links within groups, and between groups."""
        total, between = len(self.switches) - 1, len(self.groups(topology)) - 1
        return total - between, between


class Ways:
    """Taps every wire and keeps the way of each data packet, by flow and number."""

    def __init__(self, network: Network) -> None:
        self.topology = network.topology
        self.of: defaultdict[tuple[Key, int], Way] = defaultdict(Way)
        self.headers: defaultdict[str, set[str]] = defaultdict(set)
        """Kinds of frames with a detour header, by the wires that they were on: a:b."""
        self._hosts = {host.name for host in network.topology.hosts}
        network.tap(self._tap)

    def _tap(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is not WireEvent.RECEIVED:
            return
        detour, bare = peel(frame)
        parsed: Parsed = parse(bare, virtual_bytes)
        if detour:
            self.headers[f"{wire.source.node}:{wire.target.node}"].add(parsed.kind.value)
        if parsed.kind is not Kind.DATA:
            return
        way = self.of[parsed.key, parsed.packet]
        if wire.target.node in self._hosts:
            way.host = wire.target.node
        else:
            way.switches.append(wire.target.node)
            if wire.source.node not in self._hosts:
                way.detours.append(detour)
