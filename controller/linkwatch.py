# SPDX-License-Identifier: Apache-2.0
"""Detects dead links by LLDP probes over every link in both directions. It counts rounds, and has no clock.

In every round a probe leaves each end of each link, and should arrive at the other end before the next round.
A direction is dead after `missed` rounds without a probe, and alive again when a probe arrives; a link is
down while one of its directions is dead. A switch is connected while its P4Runtime session is up and it has
its table entries. Rounds count for a link from the first time that both its switches have been connected. If
a switch is disconnected later, no probe can be sent or received there, and its links count as down after the
same number of rounds. A switch whose server does not answer has most likely ended; if it still
runs, packets take paths around it.

A late probe is not a lost probe. After its probes, each switch gets a query over the same stream, which its
program answers by a packet-in. The answer shows that the switch has sent the probes before the query, and
that the switch, the stream and this process keep up. A round counts for a direction only if both its switches
answered within the round: no link is judged while the machine is busy, a switch is stopped, or the controller
is not scheduled. If a connected switch has not answered in time for `silent` rounds, it hangs or is
permanently slow: from then on its links are judged again by their probes. If probes arrive some rounds
after they were sent, the limit for all links grows by this number of rounds, until DELAY_ROUNDS have passed
without such a delay.

    a link dies, its switches answer     down within missed + 1 rounds, plus the rounds that probes are late
    a switch ends                        its links are down within the same time
    a switch hangs                       its links are down within silent + missed + 2 rounds
    switches late, up to silent rounds   nothing goes down
    probes late, up to missed - 1 rounds nothing goes down

Hosts cannot forge probes: a probe counts only if it arrived at the port to which the topology links its
sender, and switches drop LLDP that arrives at a host's port.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tailrace.controller import lldp
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down

DELAY_ROUNDS = 20
"""Rounds for which the delay of probes is remembered."""

MOST_LATE = 20
"""The largest delay of a probe in rounds; later ones are ignored."""

INDICES = 256
"""Number of query indices, which identify the round of a response; the index is a port number, and every
program accepts at least 256."""

_End = tuple[str, int]
"""One end of a link: switch and port."""


@dataclass(slots=True)
class _Direction:
    """One direction of a link.

    expected: number of rounds in which a probe was expected
    received: whether a probe arrived in this round; missed: consecutive rounds without a probe
    known: the direction was judged alive or dead at least once
    """

    expected: int = 0
    received: bool = False
    missed: int = 0
    known: bool = False
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A frame to be sent out of a port of a switch."""

    switch: str
    port: int
    frame: bytes


class LinkMonitor:
    """The state of every link, judged by probes."""

    def __init__(self, topology: Topology, missed: int) -> None:
        self._missed = missed
        self._peers: dict[_End, _End] = {}
        for link in topology.links:
            self._peers[link.a, link.a_port] = (link.b, link.b_port)
            self._peers[link.b, link.b_port] = (link.a, link.a_port)
        self._directions = {end: _Direction() for end in self._peers}
        self._senders_at: dict[str, list[_End]] = {}
        for sender, receiver in self._peers.items():
            for name in {sender[0], receiver[0]}:
                self._senders_at.setdefault(name, []).append(sender)
        self._seen: set[str] = set()  # switches that have been connected
        self._rounds = 0
        self._number = 0
        self._delays: deque[int] = deque(
            [0], maxlen=DELAY_ROUNDS
        )  # greatest delay of a probe in each of the last rounds

    @property
    def limit(self) -> int:
        """The number of rounds without a probe after which a direction is dead."""
        return self._missed + max(self._delays)

    def round(self, connected: AbstractSet[str], late: AbstractSet[str] = frozenset()) -> list[Probe]:
        """Completes a round and starts the next; returns the probes to send now.

        Args:
            connected: the switches that send and report probes. No probe is sent to other switches: a switch
                without entries would take the probe for a forged control frame of a host.
            late: switches that did not keep up in the ending round, which does not count for their links.
        """
        self._seen |= connected
        self._rounds += bool(connected)
        limit = self.limit
        self._delays.append(0)
        self._number = (self._number + 1) & 0xFFFF_FFFF
        probes = []
        for sender, direction in self._directions.items():
            judged = sender[0] not in late and self._peers[sender][0] not in late
            if direction.expected and not direction.received and judged:
                direction.missed += 1
                direction.dead = direction.dead or direction.missed >= limit
                direction.known = direction.known or direction.dead
            direction.received = False
            direction.expected += {sender[0], self._peers[sender][0]} <= self._seen
            if {sender[0], self._peers[sender][0]} <= connected:
                probes.append(Probe(*sender, lldp.encode(*sender, self._number)))
        return probes

    def probes_of(self, switch: str, connected: AbstractSet[str]) -> list[Probe]:
        """Probes over the links of a newly connected switch; they belong to the current round."""
        ends = [end for end in self._senders_at.get(switch, ()) if {end[0], self._peers[end][0]} <= connected]
        return [Probe(*end, lldp.encode(*end, self._number)) for end in ends]

    def probe_received(self, switch: str, port: int, frame: bytes) -> str | None:
        """Records a probe received at a port; returns a message if the wiring differs from the topology."""
        decoded = lldp.decode(frame)
        if decoded is None:
            return None
        sender, number = decoded
        if self._peers.get(sender) != (switch, port):
            return f"port {port} of {switch} is wrongly linked to port {sender[1]} of {sender[0]}"
        direction = self._directions[sender]
        direction.received = direction.known = True
        direction.missed, direction.dead = 0, False
        if number is not None:
            rounds = (self._number - number) & 0xFFFF_FFFF
            # a probe sent before both switches were connected may have waited for one of them
            if rounds < min(direction.expected, MOST_LATE + 1):
                self._delays[-1] = max(self._delays[-1], rounds)
        return None

    @property
    def down(self) -> Down:
        """Both ends of every link of which a direction is dead."""
        dead = [end for end, direction in self._directions.items() if direction.dead]
        return frozenset([*dead, *(self._peers[end] for end in dead)])

    @property
    def discovered(self) -> bool:
        """Whether each direction was judged. Also true after `missed` + 2 rounds: directions that are not
        judged by then wait for a switch that is not connected.
        """
        known = all(direction.known for direction in self._directions.values())
        return known or self._rounds > self._missed + 2


@dataclass(slots=True)
class Liveness:
    """Which switches respond in time: each is queried every round, and should respond before the next."""

    silent: int
    _silent_rounds: dict[str, int] = field(default_factory=dict)  # consecutive rounds, by switch
    _answered: set[str] = field(default_factory=set)
    _index: int = 0

    def round(self, connected: AbstractSet[str]) -> tuple[int, dict[str, int]]:
        """Completes a round and starts the next.

        Args:
            connected: the switches that are queried now.

        Returns:
            the index of queries and responses of the next round, and the switches that were late in the last
            round, with the number of rounds for which each has been late. After more than `silent` rounds, a
            switch counts as hung, not as late.
        """
        # a switch that is no longer connected is not late: its session handles the loss
        rounds = {
            name: 0 if name in self._answered else silent + 1
            for name, silent in self._silent_rounds.items()
            if name in connected
        }
        self._silent_rounds = rounds | {name: 0 for name in connected if name not in rounds}
        self._answered.clear()
        self._index = (self._index + 1) % INDICES
        return self._index, {name: silent for name, silent in rounds.items() if 0 < silent <= self.silent}

    def response_received(self, switch: str, index: int) -> None:
        """Records a response; ignores responses to queries of earlier rounds."""
        if index == self._index:
            self._answered.add(switch)


def link_names(topology: Topology, down: Iterable[_End]) -> list[str]:
    """The links that some ends belong to, as `a-b` in the order of the topology, one per parallel link."""
    ends = set(down)
    return [f"{link.a}-{link.b}" for link in topology.links if (link.a, link.a_port) in ends]
