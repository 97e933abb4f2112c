# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults, with their keys; each resolves to a LinkFault for every affected link or switch.

Each fault lasts from `at` to `until`; both times count from the start of the traffic. If two faults slow down
the same link, the later fault applies.
"""

from __future__ import annotations

import random
from typing import Annotated

import msgspec

from tailrace.experiments.faults.fault import FAULTS
from tailrace.experiments.faults.where import (
    ALL,
    LinkEnds,
    LinkSet,
    links_at,
    one_link,
    one_switch,
    some_directions,
    some_links,
    some_switches,
)
from tailrace.sim.link_faults import AckLoss, Blackhole, LinkDown, LinkFault, LinkSlow, Loss, SwitchRestart
from tailrace.spec import SpecError, keys
from tailrace.spec.units import format_time
from tailrace.topology import Topology

LinkFaults = tuple[LinkFault, ...]

FLOWS, DATA = LOSSES = ("flows", "data")

_AT = keys.time("at", "start of the fault")
_RATE = keys.number("rate", "probability with which each link loses a packet", above=0, most=1)


class Times(msgspec.Struct, frozen=True):
    """When a fault begins and ends."""

    at_ns: Annotated[int, _AT] = 0
    until_ns: Annotated[int | None, keys.time("until", "end of the fault", absent="never")] = None

    def __post_init__(self) -> None:
        """Refuse a fault that ends before it begins."""
        if self.until_ns is not None and self.until_ns <= self.at_ns:
            raise SpecError(f"until must be later than at, found '{format_time(self.until_ns)}'")


class LinkChoice(msgspec.Struct, frozen=True):
    """The links that a fault affects: one, or a random fraction of all."""

    link: Annotated[
        str | None, keys.text("link", "the affected link", "A-B", absent="none; give fraction")
    ] = None
    fraction: Annotated[
        float | None,
        keys.number(
            "fraction",
            "fraction of all links between switches that are affected; at least one link, drawn at random",
            above=0,
            most=1,
            absent="none; give link",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse both keys together, and neither."""
        if (self.link is None) == (self.fraction is None):
            raise SpecError("expected either link= or fraction=")

    def of(self, topology: Topology, rng: random.Random) -> list[LinkEnds]:
        """The two ends of each chosen link."""
        if self.link is not None:
            return [one_link(topology, self.link)]
        assert self.fraction is not None, "either link or fraction is given"
        return some_links(topology, self.fraction, rng)


@FAULTS.register("link-slow", "links at a fraction of their rate, in both directions")
class SlowLinks(msgspec.Struct, frozen=True):
    """Some links are slow."""

    links: LinkChoice
    times: Times
    factor: Annotated[
        float,
        keys.number(
            "factor", "fraction of their normal rate at which the links run, below 1", above=0, most=1
        ),
    ]

    def __post_init__(self) -> None:
        """Refuse a factor that slows nothing down."""
        if self.factor == 1:
            raise SpecError("factor must be less than 1, found '1'")

    def resolve(self, topology: Topology, rng: random.Random) -> LinkFaults:
        times = self.times.at_ns, self.times.until_ns
        return tuple(LinkSlow(a, b, self.factor, *times) for a, b in self.links.of(topology, rng))


@FAULTS.register("link-down", "links that have failed in both directions")
class DeadLinks(msgspec.Struct, frozen=True):
    """Some links are down: they lose all packets."""

    links: LinkChoice
    times: Times

    def resolve(self, topology: Topology, rng: random.Random) -> LinkFaults:
        times = self.times.at_ns, self.times.until_ns
        return tuple(LinkDown(a, b, *times) for a, b in self.links.of(topology, rng))


@FAULTS.register("drop", "links between switches lose packets of flows at random")
class Drops(msgspec.Struct, frozen=True):
    """Some links lose packets of flows (RLB §IV-A: the links to one core switch).

    Dead links of Spritz's authors are `rate=1,fraction=0.02,only=data`: ACKs and NACKs pass
    (compositequeue.cpp, receivePacket; dragonfly_topology.cpp). The paper (§V-D) speaks of links.
    """

    times: Times
    rate: Annotated[float, _RATE]
    where: Annotated[
        str,
        keys.text(
            "where",
            "affected links: all, one, those of a role's switches (both directions), or those into a switch",
            "all|A-B|ROLE|SWITCH",
        ),
    ] = ALL
    switches: Annotated[
        int,
        keys.integer(
            "switches",
            "number of switches of that role, drawn at random, whose incoming links lose packets",
            least=1,
            absent="all of them",
        ),
    ] = 0
    fraction: Annotated[
        float | None,
        keys.number(
            "fraction",
            "fraction of all directions of links between switches that are affected, drawn at random",
            above=0,
            most=1,
            absent="none; where= decides",
        ),
    ] = None
    only: Annotated[
        str, keys.choice("only", "frames that may be lost: all of flows, or only data, not ACKs", LOSSES)
    ] = FLOWS

    def __post_init__(self) -> None:
        """Refuse places beside fraction=."""
        if self.fraction is not None and (self.where != ALL or self.switches):
            raise SpecError("expected either fraction= or where= and switches=")

    def resolve(self, topology: Topology, rng: random.Random) -> LinkFaults:
        only_data = self.only == DATA
        times = self.times.at_ns, self.times.until_ns
        return tuple(
            Loss(a, b, self.rate, *times, links.one_way, only_data)
            for links in self._sets(topology, rng)
            for a, b in links.links
        )

    def _sets(self, topology: Topology, rng: random.Random) -> list[LinkSet]:
        if self.fraction is not None:
            return [some_directions(topology, self.fraction, rng)]
        chosen = some_switches(topology, self.where, self.switches, rng) if self.switches else [self.where]
        return [links_at(topology, where) for where in chosen]


@FAULTS.register("ack-loss", "links between switches lose Flowcut's ACKs (from switches or NICs) at random")
class AckLosses(msgspec.Struct, frozen=True):
    """All links lose Flowcut's ACKs."""

    times: Times
    rate: Annotated[float, _RATE]

    def resolve(self, topology: Topology, _rng: random.Random) -> LinkFaults:
        times = self.times.at_ns, self.times.until_ns
        return tuple(AckLoss(a, b, self.rate, *times) for a, b in links_at(topology, ALL).links)


@FAULTS.register("blackhole", "a switch that silently loses all packets of some pairs (RLB §IV)")
class Blackholes(msgspec.Struct, frozen=True):
    """A switch loses the packets of some pairs."""

    times: Times
    pairs: Annotated[
        float,
        keys.number(
            "pairs",
            "share of all (sender, receiver) pairs that is affected, drawn at random",
            above=0,
            most=1,
        ),
    ]
    where: Annotated[
        str, keys.text("where", "the switch, or a role from which one switch is drawn", "all|ROLE|SWITCH")
    ] = ALL

    def resolve(self, topology: Topology, rng: random.Random) -> LinkFaults:
        switch = one_switch(topology, self.where, rng)
        ips = [host.ip for host in topology.hosts]
        receivers = len(ips) - 1
        chosen = rng.sample(range(len(ips) * receivers), max(1, round(self.pairs * len(ips) * receivers)))
        ends = (divmod(number, receivers) for number in chosen)
        # dst counts all hosts except the sender
        pairs = frozenset((ips[src], ips[dst + (dst >= src)]) for src, dst in ends)
        return (Blackhole(switch, pairs, self.times.at_ns, self.times.until_ns),)


@FAULTS.register("switch-restart", "a switch that loses its state and its packets, and is down for a while")
class Restart(msgspec.Struct, frozen=True):
    """A switch restarts: it loses all its state, including counters."""

    switch: Annotated[
        str, keys.text("switch", "the switch, or a role from which one switch is drawn", "ROLE|SWITCH")
    ]
    down_ns: Annotated[int, keys.time("for", "time for which the switch is down", least=1)]
    at_ns: Annotated[int, _AT] = 0

    def resolve(self, topology: Topology, rng: random.Random) -> LinkFaults:
        return (SwitchRestart(one_switch(topology, self.switch, rng), self.at_ns, self.down_ns),)
