# SPDX-License-Identifier: Apache-2.0
"""One flow in a Dragonfly most of whose groups are congested (Spritz §V-B, Fig. 5, Table III).

A flow goes from one group to another, both drawn at random. In every congested group, that of the source
among them, the gate is the switch that has the link to the flow's destination group: hosts send to the hosts
of the gate, so the links within the group that lead to the gate, which every path through the group may need,
have long queues. `free` groups besides that of the destination have no traffic. No switch near the source
sees which groups those are.

What the paper leaves open:

* who sends: the hosts of the group's other switches (GROUP), so that idle groups stay idle, or those of all
  congested groups (ALL), some of whose paths lead through idle ones;
* how much: each of them sends `flows` flows of `background_bytes` at once. Where more flows meet on a link to
  the gate than its queue holds packets, congestion control cannot end the congestion: one packet of each is
  too much. Where fewer do, it is the flows' first windows that fill the queues. How long minimal routing
  takes, which has one path, measures it (the page of Table III);
* which way: each flow keeps one path that a hash chooses, so that all schemes meet the same load (HASH), as
  in the paper's shared networks, or the scheme chooses (SCHEME);
* when: `ahead_ns` before the one flow.

That flow's source is not on the gate and sends nothing else, nor is its destination on the switch at the
other end of the gate's link.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.pairs import Pair
from tailrace.experiments.workloads.registry import DEFAULT_BYTES, register
from tailrace.experiments.workloads.transfer import ECMP, PatternError, Transfer
from tailrace.spec import keys
from tailrace.topology import Host, Topology

GROUP = "group"
ALL = "all"
SENDERS = (GROUP, ALL)
"""Whose hosts send to a gate: its group's, or every congested group's."""

HASH = "hash"
SCHEME = "scheme"
PATHS = (HASH, SCHEME)
"""What chooses the paths of the load."""


@register("congested-groups", "one flow in a Dragonfly most of whose groups are congested")
@dataclass(frozen=True, slots=True)
class CongestedGroups:
    """One flow of `size_bytes`; `free` groups without traffic besides that of its destination."""

    size_bytes: Annotated[int, keys.size("size", "of the one flow", least=1)] = DEFAULT_BYTES
    free: Annotated[
        int, keys.integer("free", "groups without traffic, besides that of the destination", least=0)
    ] = 2
    background_bytes: Annotated[
        int, keys.size("background", "of each flow that loads a group, and is not measured", least=1)
    ] = 64 << 20
    flows: Annotated[int, keys.integer("flows", "of each host that loads a group", least=1)] = 32
    senders: Annotated[
        str, keys.choice("from", "whose hosts load a group: its own, or those of all such groups", SENDERS)
    ] = GROUP
    path: Annotated[str, keys.choice("path", "what chooses the paths of the load", PATHS)] = HASH
    ahead_ns: Annotated[int, keys.time("ahead", "so long before the one flow the load begins")] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        if topology.kind != "dragonfly":
            raise PatternError(f"it is about the groups of a dragonfly, not of a {topology.kind}")
        check_flows(self.flows * len(topology.hosts) if self.flows > 1 else 0)
        groups = sorted({switch.group for switch in topology.switches})
        if len(groups) < self.free + 2:
            raise PatternError(f"free must leave a group for the source, at most {len(groups) - 2}")
        start, end, *rest = rng.sample(groups, len(groups))
        source = _host_away_from(topology, start, gates(topology, start, end), rng)
        target = _host_away_from(topology, end, gates(topology, end, start), rng)
        yield Transfer(source, target, self.size_bytes, start_ns=self.ahead_ns, flow_class=MONITORED)
        loaded = sorted([start, *rest[self.free :]])
        gate_of = {group: gates(topology, group, end) for group in loaded}
        steering = "" if self.path == SCHEME else ECMP
        for sender, receiver in self._load(topology, gate_of, source, rng):
            yield Transfer(sender, receiver, self.background_bytes, flow_class=BACKGROUND, steering=steering)

    def _load(
        self, topology: Topology, gate_of: Mapping[int, frozenset[str]], source: Host, rng: random.Random
    ) -> list[Pair]:
        """Who sends to whom to congest the groups, a flow each."""
        if self.senders == GROUP:
            return _within(topology, gate_of, source) * self.flows
        return [pair for _ in range(self.flows) for pair in _across(topology, gate_of, source, rng)]


def gates(topology: Topology, group: int, other: int) -> frozenset[str]:
    """The switches of a group that have a link to another group."""
    ends = [end for link in topology.links for end in ((link.a, link.b), (link.b, link.a))]
    return frozenset(
        near
        for near, far in ends
        if (topology.switch(near).group, topology.switch(far).group) == (group, other)
    )


def _within(topology: Topology, gate_of: Mapping[int, frozenset[str]], source: Host) -> list[Pair]:
    """Every host of a group's other switches sends to one of the gate, each of which hears from as many."""
    pairs = []
    for group, gate in gate_of.items():
        inside = [host for host in topology.hosts if topology.switch(host.switch).group == group]
        receivers = [host for host in inside if host.switch in gate]
        senders = [host for host in inside if host.switch not in gate and host != source]
        pairs += [(sender, receivers[number % len(receivers)]) for number, sender in enumerate(senders)]
    return pairs


def _across(
    topology: Topology, gate_of: Mapping[int, frozenset[str]], source: Host, rng: random.Random
) -> list[Pair]:
    """Every host of the groups sends to one of their gates' hosts, dealt at random.

    A host that is dealt one of its own switch sends nothing: no link within a group would notice.
    """
    inside = [host for host in topology.hosts if topology.switch(host.switch).group in gate_of]
    senders = [host for host in inside if host != source]
    receivers = [host for host in inside if host.switch in gate_of[topology.switch(host.switch).group]]
    dealt = receivers * -(-len(senders) // len(receivers))
    rng.shuffle(dealt)
    return [
        (sender, receiver)
        for sender, receiver in zip(senders, dealt, strict=False)
        if sender.switch != receiver.switch
    ]


def _host_away_from(topology: Topology, group: int, switches: frozenset[str], rng: random.Random) -> Host:
    """A host of a group that is on none of some switches.

    Raises:
        PatternError: there is none.
    """
    candidates = [
        host
        for host in topology.hosts
        if topology.switch(host.switch).group == group and host.switch not in switches
    ]
    if not candidates:
        raise PatternError("every switch of a group has a link to the other group; expected more switches")
    return rng.choice(candidates)
