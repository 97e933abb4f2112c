# SPDX-License-Identifier: Apache-2.0
"""One flow in a Dragonfly most of whose groups are congested (Spritz §V-B, Fig. 5, Table III).

A flow goes from one group to another, both drawn at random. In every congested group, including that of the
source, the gate is the switch that has the link to the flow's destination group. Hosts send to the hosts of
the gate, so the group's internal links to the gate, which every path through the group may need, have long
queues. `free` groups besides that of the destination have no traffic. No switch near the source can observe
which groups are free.

What the paper leaves open:

* the senders: the hosts of the group's other switches (GROUP), so that idle groups stay idle, or those of all
  congested groups (ALL), some of whose paths lead through idle groups;
* the load: each sender has `flows` flows of `background_bytes` at once. If a link to the gate carries more
  flows than its queue can store packets, congestion control cannot end the congestion: one packet of each
  flow is too much. If it carries fewer, the flows' first windows fill the queues. The completion time with
  minimal routing, which has one path, shows how strong the congestion is (docs/results/spritz.md);
* the paths: a hash chooses one path for each flow, so that all schemes meet the same load (HASH), as
  the paper does for load beside the measured flows (§V-B), or the scheme chooses (SCHEME);
* the time: the load starts `ahead_ns` before the measured flow.

The measured flow's source is not on the gate and sends nothing else; its destination is not on the switch at
the other end of the gate's link.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

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
"""Which hosts send to a gate: those of its group, or those of all congested groups."""

HASH = "hash"
SCHEME = "scheme"
PATHS = (HASH, SCHEME)
"""What chooses the paths of the flows that load the groups."""


@register("congested-groups", "one measured flow in a Dragonfly in which most groups are congested")
class CongestedGroups(msgspec.Struct, frozen=True):
    """One measured flow of `size_bytes`; `free` groups have no traffic, besides that of its destination."""

    size_bytes: Annotated[int, keys.size("size", "size of the measured flow", least=1)] = DEFAULT_BYTES
    free: Annotated[
        int,
        keys.integer("free", "number of groups without traffic, in addition to the destination's", least=0),
    ] = 2
    background_bytes: Annotated[
        int,
        keys.size("background", "size of each background flow that congests a group; not measured", least=1),
    ] = 64 << 20
    flows: Annotated[int, keys.integer("flows", "number of background flows of each sender", least=1)] = 32
    senders: Annotated[
        str,
        keys.choice(
            "from",
            "senders of a group's background flows: hosts of this group, or of all congested groups",
            SENDERS,
        ),
    ] = GROUP
    path: Annotated[
        str, keys.choice("path", "what chooses the paths of background flows: a hash, or the scheme", PATHS)
    ] = HASH
    ahead_ns: Annotated[
        int, keys.time("ahead", "time from the start of the background flows to that of the measured flow")
    ] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        if topology.kind != "dragonfly":
            raise PatternError(f"expected a dragonfly, whose groups it loads, found a {topology.kind}")
        # one flow of each host is not too many: topologies are limited to fewer hosts (families/build.py)
        check_flows(self.flows * len(topology.hosts) if self.flows > 1 else 0)
        groups = sorted({switch.group for switch in topology.switches})
        if len(groups) < self.free + 2:
            raise PatternError(f"free must be at most {len(groups) - 2}, to leave a group for the source")
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
        """The sender and receiver of each flow that congests the groups."""
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
    """Every host of a group's other switches sends to a host of the gate; receivers are used in turn."""
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
    """Every host of the groups sends to a random host of the gates; all receivers are used equally often.

    A host whose receiver is on its own switch sends nothing, since that would load no link within a group.
    """
    inside = [host for host in topology.hosts if topology.switch(host.switch).group in gate_of]
    senders = [host for host in inside if host != source]
    receivers = [host for host in inside if host.switch in gate_of[topology.switch(host.switch).group]]
    repeated = receivers * -(-len(senders) // len(receivers))
    rng.shuffle(repeated)
    return [
        (sender, receiver)
        for sender, receiver in zip(senders, repeated, strict=False)
        if sender.switch != receiver.switch
    ]


def _host_away_from(topology: Topology, group: int, switches: frozenset[str], rng: random.Random) -> Host:
    """A random host of a group that is on none of the given switches.

    Raises:
        PatternError: the group has no such host.
    """
    candidates = [
        host
        for host in topology.hosts
        if topology.switch(host.switch).group == group and host.switch not in switches
    ]
    if not candidates:
        raise PatternError("every switch of a group has a link to the other group; expected more switches")
    return rng.choice(candidates)
