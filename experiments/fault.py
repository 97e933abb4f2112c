# SPDX-License-Identifier: Apache-2.0
"""Faults: words such as ``link-slow:link=leaf1-spine1,factor=0.1`` -> what happens to which link.

    link-slow:link=A-B|fraction=,factor=        links that run at `factor` of their rate, both ways
    link-down:link=A-B|fraction=,at=,until=     links that are dead from `at` to `until` (for ever without it)
    drop:rate=,where=                           data that fabric links lose at random with this probability
    ack-loss:rate=                              Flowcut ACKs that fabric links lose at random

`fraction` of all links between switches are chosen at random, at least one. `where` is `all`, a link A-B,
or the role of a switch (spine, core, ...) whose links are meant. Times count from the start of the traffic.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TypeAlias

from spec import Options, SpecError, Words, parse
from topology import Link, Topology

_KEYS = {
    "link-slow": ("link", "fraction", "factor"),
    "link-down": ("link", "fraction", "at", "until"),
    "drop": ("rate", "where"),
    "ack-loss": ("rate",),
}


@dataclass(frozen=True, slots=True)
class LinkSlow:
    """The link a-b carries `factor` (over 0, below 1) of its rate, in both directions."""

    a: str
    b: str
    factor: float


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The link a-b carries nothing from `at_ns` until `until_ns`; None: for ever."""

    a: str
    b: str
    at_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class Drop:
    """The link a-b loses each data packet with probability `rate`, in both directions."""

    a: str
    b: str
    rate: float


@dataclass(frozen=True, slots=True)
class AckLoss:
    """The link a-b loses each Flowcut ACK with probability `rate`, in both directions."""

    a: str
    b: str
    rate: float


LinkFault: TypeAlias = LinkSlow | LinkDown | Drop | AckLoss


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as it was written. `place` is a link, a role or `all`; empty where `fraction` chooses links."""

    words: str
    name: str
    place: str = ""
    fraction: float = 0.0
    factor: float = 1.0
    rate: float = 0.0
    at_ns: int = 0
    until_ns: int | None = None

    def resolve(self, topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        """What happens to each link that is hit.

        Raises:
            SpecError: the topology has no such link.
        """
        return tuple(self._on(link) for link in self._links(topology, rng))

    def _on(self, link: Link) -> LinkFault:
        if self.name == "link-slow":
            return LinkSlow(link.a, link.b, self.factor)
        if self.name == "link-down":
            return LinkDown(link.a, link.b, self.at_ns, self.until_ns)
        if self.name == "drop":
            return Drop(link.a, link.b, self.rate)
        return AckLoss(link.a, link.b, self.rate)

    def _links(self, topology: Topology, rng: random.Random) -> list[Link]:
        links = topology.links
        if not links:
            raise SpecError(f"fault {self.name}: the topology has no link between switches")
        if self.fraction:
            return rng.sample(links, max(1, round(self.fraction * len(links))))
        if self.place == "all":
            return list(links)
        found = [link for link in links if self.place in (f"{link.a}-{link.b}", f"{link.b}-{link.a}")]
        if not found and self.name == "drop":
            roles = {switch.name: switch.role for switch in topology.switches}
            found = [link for link in links if self.place in (roles[link.a], roles[link.b])]
        if not found:
            example = f"{links[0].a}-{links[0].b}"
            raise SpecError(f"fault {self.name}: the topology has no {self.place!r}; a link is {example}")
        return found


def parse_fault(text: str) -> Fault:
    """The fault that words describe.

    Raises:
        SpecError: unknown name or bad option; one line says which.
    """
    words = parse(text, "fault")
    keys = _KEYS.get(words.name)
    if keys is None:
        raise SpecError(f"fault {words.name!r} is not known; expected {', '.join(_KEYS)}")
    options = Options(words, keys)
    if words.name == "drop":
        return Fault(str(words), words.name, place=options.text("where", "all"), rate=_share(options, "rate"))
    if words.name == "ack-loss":
        return Fault(str(words), words.name, place="all", rate=_share(options, "rate"))
    return _link_fault(words, options)


def _link_fault(words: Words, options: Options) -> Fault:
    if ("link" in options) == ("fraction" in options):
        raise SpecError(f"{words.title}: expected either link= or fraction=")
    place = options.text("link", "")
    fraction = _share(options, "fraction") if "fraction" in options else 0.0
    if words.name == "link-slow":
        factor = _share(options, "factor")
        if factor == 1:
            raise options.error("factor", "less than 1")
        return Fault(str(words), words.name, place, fraction, factor=factor)
    at_ns = options.time_ns("at", 0)
    until_ns = options.time_ns("until") if "until" in options else None
    if until_ns is not None and until_ns <= at_ns:
        raise options.error("until", "later than at")
    return Fault(str(words), words.name, place, fraction, at_ns=at_ns, until_ns=until_ns)


def _share(options: Options, key: str) -> float:
    """A number over 0 and up to 1."""
    value = options.number(key, least=0, most=1)
    if math.isclose(value, 0):
        raise options.error(key, "more than 0")
    return value
