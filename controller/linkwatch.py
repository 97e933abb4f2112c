# SPDX-License-Identifier: Apache-2.0
"""Which links are dead, by LLDP frames that the controller sends over every link both ways; without a clock.

Every round a probe leaves each end of each link, and should have come in at the other end before the next
round. A direction is dead after `missed` rounds without, and alive with the next probe that comes in; a link
is down while one of its directions is dead. Rounds count only from when both switches first had their
entries. If the connection to a switch is lost, no probe can be sent or seen there, and after as many rounds
its links count as down: a switch whose server does not answer has most likely ended, and if it has not, its
neighbours still reach everything around it.

Hosts cannot deceive this: a frame counts only where it came in at the port to which the topology links its
sender, and switches drop LLDP that comes in at a host's port.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controller import lldp
from topology import Topology
from topology.routing import Down

_End = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """How links are watched: a round every `interval_s`, dead after `missed` rounds in a row."""

    interval_s: float = 0.5
    missed: int = 3


@dataclass(slots=True)
class _Direction:
    """One direction of a link.

    expected: a probe should come in before the next round; known: it was found alive or dead once
    """

    expected: bool = False
    heard: bool = False
    missed: int = 0
    known: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A frame to be sent out of a port of a switch."""

    switch: str
    port: int
    frame: bytes


class LinkMonitor:
    """What is known of every link."""

    def __init__(self, topology: Topology, missed: int) -> None:
        self._missed = missed
        self._peers: dict[_End, _End] = {}
        for link in topology.links:
            self._peers[link.a, link.a_port] = (link.b, link.b_port)
            self._peers[link.b, link.b_port] = (link.a, link.a_port)
        self._directions = {end: _Direction() for end in self._peers}
        self._frames = {end: lldp.encode(*end) for end in self._peers}
        self._seen: set[str] = set()
        self._rounds = 0

    def round(self, connected: AbstractSet[str]) -> list[Probe]:
        """Ends a round and starts the next: the probes to send now, from the switches that can."""
        self._seen |= connected
        self._rounds += bool(connected)
        probes = []
        for sender, direction in self._directions.items():
            if direction.expected and not direction.heard:
                direction.missed += 1
                direction.known = direction.known or direction.missed >= self._missed
            direction.heard = False
            direction.expected = {sender[0], self._peers[sender][0]} <= self._seen
            if sender[0] in connected:
                probes.append(Probe(*sender, self._frames[sender]))
        return probes

    def heard(self, switch: str, port: int, frame: bytes) -> str | None:
        """Notes a frame that came in at a port; a line of text where the wiring is not the topology's."""
        sender = lldp.decode(frame)
        if sender is None:
            return None
        if self._peers.get(sender) != (switch, port):
            return f"port {port} of {switch} is wrongly linked to port {sender[1]} of {sender[0]}"
        direction = self._directions[sender]
        direction.heard = direction.known = True
        direction.missed = 0
        return None

    @property
    def down(self) -> Down:
        """Both ends of every link of which a direction is dead."""
        dead = [end for end, direction in self._directions.items() if direction.missed >= self._missed]
        return frozenset([*dead, *(self._peers[end] for end in dead)])

    @property
    def settled(self) -> bool:
        """Whether each direction was found alive or dead, or waits for a switch that is not there."""
        known = all(direction.known for direction in self._directions.values())
        return known or self._rounds > self._missed + 2


def link_names(topology: Topology, down: Iterable[_End]) -> list[str]:
    """The links that some ends belong to, as `a-b` in the order of the topology, parallel ones each."""
    ends = set(down)
    return [f"{link.a}-{link.b}" for link in topology.links if (link.a, link.a_port) in ends]
