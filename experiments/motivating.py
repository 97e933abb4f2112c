# SPDX-License-Identifier: Apache-2.0
"""One flow in a Dragonfly most of whose groups are congested (Spritz §V-B, Fig. 5, Table III).

A flow goes from one group to another, both drawn at random. In every congested group, that of the source
among them, the gate is the switch that has the link to the flow's destination group: all hosts of the other
switches send to the hosts of the gate, so the links within the group that lead to the gate, which every path
through the group may need, have long queues. `free` groups besides that of the destination have no traffic.
No switch near the source sees which groups those are.

What the paper leaves open, and how it is here: each loading host sends `flows` flows of `background_bytes` at
once. So many that congestion control does not end the congestion: where more flows meet at a port than its
queue holds packets, one packet of each is too much. Each keeps one path that a hash chooses, whatever the
scheme, so that all schemes meet the same load. The one flow's source is not on the gate, nor its destination
on the switch at the other end of the gate's link.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.classes import BACKGROUND, MONITORED
from experiments.transfer import ECMP, PatternError, Transfer
from topology import Host, Topology


@dataclass(frozen=True, slots=True)
class Motivating:
    """One flow of `size_bytes`; `free` groups without traffic besides that of its destination."""

    size_bytes: int
    free: int
    background_bytes: int
    flows: int = 1

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        if topology.kind != "dragonfly":
            raise PatternError(f"it is about the groups of a dragonfly, not of a {topology.kind}")
        groups = sorted({switch.group for switch in topology.switches})
        if len(groups) < self.free + 2:
            raise PatternError(f"free must leave a group for the source, at most {len(groups) - 2}")
        start, end, *others = rng.sample(groups, len(groups))
        source = _host_away_from(topology, start, gates(topology, start, end), rng)
        target = _host_away_from(topology, end, gates(topology, end, start), rng)
        yield Transfer(source, target, self.size_bytes, flow_class=MONITORED)
        loaded = sorted([start, *others[self.free :]])
        pairs = [
            pair
            for group in loaded
            for pair in self._load(topology, group, gates(topology, group, end), source)
        ]
        for sender, receiver in pairs * self.flows:
            yield Transfer(sender, receiver, self.background_bytes, flow_class=BACKGROUND, steering=ECMP)

    def _load(
        self, topology: Topology, group: int, gate: frozenset[str], source: Host
    ) -> Iterator[tuple[Host, Host]]:
        """Who sends to whom to congest a group."""
        inside = [host for host in topology.hosts if topology.switch(host.switch).group == group]
        receivers = [host for host in inside if host.switch in gate]
        senders = [host for host in inside if host.switch not in gate and host != source]
        for number, sender in enumerate(senders):
            yield sender, receivers[number % len(receivers)]


def gates(topology: Topology, group: int, other: int) -> frozenset[str]:
    """The switches of a group that have a link to another group."""
    ends = [end for link in topology.links for end in ((link.a, link.b), (link.b, link.a))]
    return frozenset(
        near
        for near, far in ends
        if (topology.switch(near).group, topology.switch(far).group) == (group, other)
    )


def _host_away_from(topology: Topology, group: int, switches: frozenset[str], rng: random.Random) -> Host:
    """A host of a group that is on none of some switches.

    Raises:
        PatternError: there is none.
    """
    found = [
        host
        for host in topology.hosts
        if topology.switch(host.switch).group == group and host.switch not in switches
    ]
    if not found:
        raise PatternError("every switch of a group has a link to the other group; expected more switches")
    return rng.choice(found)
