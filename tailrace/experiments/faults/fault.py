# SPDX-License-Identifier: Apache-2.0
"""Faults: words such as ``link-slow:link=leaf1-spine1,factor=0.1`` -> what happens to which link or switch.

    link-slow:link=A-B|fraction=,factor=,at=,until=   links that run at `factor` of their rate, both ways
    link-down:link=A-B|fraction=,at=,until=           links that are dead
    drop:rate=,where=,switches=,at=,until=            data that fabric links lose at random, with probability
                                                      `rate` on each
    ack-loss:rate=,at=,until=                         the same for Flowcut ACKs, on all fabric links
    blackhole:pairs=,where=,at=,until=                a switch that silently loses all packets of a share of
                                                      all pairs (sender, receiver), drawn at random (RLB §IV)
    switch-restart:switch=,at=,for=                   a switch that loses its state, counters too, and what is
                                                      in it, and is away for so long

Each lasts from `at` (0 without it) to `until` (for ever without it), from the start of the traffic on.
`fraction` of all links between switches are chosen at random, at least one. `where` of drop is `all`, a link
A-B, the role of a switch (spine, core, ...) whose links are meant, in both directions, or the name of a
switch that loses what reaches it. With `switches` so many switches of a role, drawn at random, lose what
reaches them (RLB §IV-A: one of the core). `where` of blackhole and `switch` are the name of a switch, or a
role of which one is drawn at random; a blackhole without it is in one of all switches. Of two faults that
slow a link down, the later one counts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tailrace.experiments.faults.place import ALL, links_at, one_link, one_switch, some_links, some_switches
from tailrace.topology import Topology
from tailrace.words import Options, SpecError, parse


@dataclass(frozen=True, slots=True)
class LinkSlow:
    """The link a-b carries `factor` (over 0, below 1) of its rate, in both directions, in the given time.

    None as an end, here and below: for ever.
    """

    a: str
    b: str
    factor: float
    at_ns: int = 0
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The link a-b carries nothing."""

    a: str
    b: str
    at_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class Drop:
    """The link a-b loses each data packet with probability `rate`, in both directions or only from a to b."""

    a: str
    b: str
    rate: float
    at_ns: int = 0
    until_ns: int | None = None
    one_way: bool = False


@dataclass(frozen=True, slots=True)
class AckLoss:
    """The link a-b loses each Flowcut ACK with probability `rate`, in both directions."""

    a: str
    b: str
    rate: float
    at_ns: int = 0
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Blackhole:
    """`switch` loses every packet between these pairs of source and destination address."""

    switch: str
    pairs: frozenset[tuple[str, str]]
    at_ns: int = 0
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchRestart:
    """`switch` forgets everything at `at_ns`, and comes back `down_ns` later."""

    switch: str
    at_ns: int
    down_ns: int


LinkFault: TypeAlias = LinkSlow | LinkDown | Drop | AckLoss | Blackhole | SwitchRestart
"""What happens to one link, or to one switch."""

_Resolve: TypeAlias = Callable[[Topology, random.Random], tuple[LinkFault, ...]]


def last_change_ns(fault: LinkFault) -> int:
    """When a fault is over, or, if it lasts for ever, when it begins."""
    if isinstance(fault, SwitchRestart):
        return fault.at_ns + fault.down_ns
    return fault.at_ns if fault.until_ns is None else fault.until_ns


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as it was written, and how to find out what it hits."""

    words: str
    name: str
    hits: _Resolve

    def resolve(self, topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        """What happens to each link or switch that is hit; the same for the same numbers from `rng`.

        Raises:
            SpecError: the topology has no such link or switch.
        """
        try:
            return self.hits(topology, rng)
        except SpecError as error:
            raise SpecError(f"fault {self.name}: {error}") from error


def parse_fault(text: str) -> Fault:
    """The fault that words describe.

    Raises:
        SpecError: unknown name or bad option; one line says which.
    """
    words = parse(text, "fault")
    kind = _KINDS.get(words.name)
    if kind is None:
        raise SpecError(f"fault {words.name!r} is not known; expected {', '.join(_KINDS)}")
    return Fault(str(words), words.name, kind.make(Options(words, kind.keys)))


def _link_slow(options: Options) -> _Resolve:
    links = _links(options)
    factor = _share(options, "factor")
    if factor == 1:
        raise options.error("factor", "less than 1")
    at_ns, until_ns = _times(options)
    return lambda topology, rng: tuple(
        LinkSlow(a, b, factor, at_ns, until_ns) for a, b in links(topology, rng)
    )


def _link_down(options: Options) -> _Resolve:
    links = _links(options)
    at_ns, until_ns = _times(options)
    return lambda topology, rng: tuple(LinkDown(a, b, at_ns, until_ns) for a, b in links(topology, rng))


def _drop(options: Options) -> _Resolve:
    rate, where = _share(options, "rate"), options.text("where", ALL)
    count = options.integer("switches", 0, least=1)
    at_ns, until_ns = _times(options)

    def resolve(topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        places = some_switches(topology, where, count, rng) if count else [where]
        found = [links_at(topology, place) for place in places]
        return tuple(
            Drop(a, b, rate, at_ns, until_ns, links.one_way) for links in found for a, b in links.links
        )

    return resolve


def _ack_loss(options: Options) -> _Resolve:
    rate = _share(options, "rate")
    at_ns, until_ns = _times(options)
    return lambda topology, _rng: tuple(
        AckLoss(a, b, rate, at_ns, until_ns) for a, b in links_at(topology, ALL).links
    )


def _blackhole(options: Options) -> _Resolve:
    share, where = _share(options, "pairs"), options.text("where", ALL)
    at_ns, until_ns = _times(options)

    def resolve(topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        switch = one_switch(topology, where, rng)
        ips = [host.ip for host in topology.hosts]
        others = len(ips) - 1
        chosen = rng.sample(range(len(ips) * others), max(1, round(share * len(ips) * others)))
        ends = (divmod(number, others) for number in chosen)
        pairs = frozenset((ips[src], ips[dst + (dst >= src)]) for src, dst in ends)
        return (Blackhole(switch, pairs, at_ns, until_ns),)

    return resolve


def _switch_restart(options: Options) -> _Resolve:
    name = options.text("switch")
    at_ns, down_ns = options.time_ns("at", 0), options.time_ns("for", least=1)
    return lambda topology, rng: (SwitchRestart(one_switch(topology, name, rng), at_ns, down_ns),)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A name in words: its keys, and what to make of them."""

    make: Callable[[Options], _Resolve]
    keys: tuple[str, ...]


_KINDS: Mapping[str, _Kind] = {
    "link-slow": _Kind(_link_slow, ("link", "fraction", "factor", "at", "until")),
    "link-down": _Kind(_link_down, ("link", "fraction", "at", "until")),
    "drop": _Kind(_drop, ("rate", "where", "switches", "at", "until")),
    "ack-loss": _Kind(_ack_loss, ("rate", "at", "until")),
    "blackhole": _Kind(_blackhole, ("pairs", "where", "at", "until")),
    "switch-restart": _Kind(_switch_restart, ("switch", "at", "for")),
}


def _links(options: Options) -> Callable[[Topology, random.Random], list[tuple[str, str]]]:
    """Finds the links of a fault with either link= or fraction=."""
    if ("link" in options) == ("fraction" in options):
        raise SpecError(f"{options.words.title}: expected either link= or fraction=")
    if "link" in options:
        place = options.text("link")
        return lambda topology, _rng: [one_link(topology, place)]
    fraction = _share(options, "fraction")
    return lambda topology, rng: some_links(topology, fraction, rng)


def _times(options: Options) -> tuple[int, int | None]:
    """When it begins and ends."""
    at_ns = options.time_ns("at", 0)
    until_ns = options.time_ns("until") if "until" in options else None
    if until_ns is not None and until_ns <= at_ns:
        raise options.error("until", "later than at")
    return at_ns, until_ns


def _share(options: Options, key: str) -> float:
    """A number over 0 and up to 1."""
    value = options.number(key, least=0, most=1)
    if math.isclose(value, 0):
        raise options.error(key, "more than 0")
    return value
