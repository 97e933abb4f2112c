# SPDX-License-Identifier: Apache-2.0
"""The place of a fault in a topology, as specs name it: a link A-B, a role of switches, or a switch.

A link here is a pair of switch names, so parallel links between two switches share a fault.
"""

from __future__ import annotations

import random

import msgspec

from tailrace.spec import SpecError
from tailrace.topology import Topology

ALL = "all"

LinkEnds = tuple[str, str]


class LinkSet(msgspec.Struct, frozen=True):
    """Some links; with `one_way`, only the direction from the first end to the second."""

    links: tuple[LinkEnds, ...]
    one_way: bool = False


def _fabric(topology: Topology) -> list[LinkEnds]:
    """All links between switches."""
    links = list(dict.fromkeys((link.a, link.b) for link in topology.links))
    if not links:
        raise SpecError("the topology has no link between switches")
    return links


def one_link(topology: Topology, text: str) -> LinkEnds:
    """The link A-B, by its ends in either order.

    Raises:
        SpecError: the topology has no such link.
    """
    links = _fabric(topology)
    for a, b in links:
        if text in (f"{a}-{b}", f"{b}-{a}"):
            return a, b
    raise SpecError(f"the topology has no {text!r}; a link is written as {links[0][0]}-{links[0][1]}")


def some_links(topology: Topology, fraction: float, rng: random.Random) -> list[LinkEnds]:
    """A fraction of all links, at random, at least one."""
    links = _fabric(topology)
    return rng.sample(links, max(1, round(fraction * len(links))))


def some_directions(topology: Topology, fraction: float, rng: random.Random) -> LinkSet:
    """A fraction of all directions of links, at random, at least one."""
    directions = [ends for a, b in _fabric(topology) for ends in ((a, b), (b, a))]
    chosen = rng.sample(directions, max(1, round(fraction * len(directions))))
    return LinkSet(tuple(chosen), one_way=True)


def links_at(topology: Topology, where: str) -> LinkSet:
    """All links, those of a role, those into a switch (including its hosts' links), or the link A-B.

    Raises:
        SpecError: the topology has no link, role or switch of that name.
    """
    links = _fabric(topology)
    if where == ALL:
        return LinkSet(tuple(links))
    roles = {switch.name: switch.role for switch in topology.switches}
    if where in roles:
        peers = dict.fromkeys(peer.name for peer in topology.ports_of(where).values())
        return LinkSet(tuple((peer, where) for peer in peers), one_way=True)
    if where in roles.values():
        return LinkSet(tuple((a, b) for a, b in links if where in (roles[a], roles[b])))
    return LinkSet((one_link(topology, where),))


def one_switch(topology: Topology, where: str, rng: random.Random) -> str:
    """The switch of that name, or one drawn at random from a role or from all switches.

    Raises:
        SpecError: the topology has no such switch.
    """
    return where if where in _names(topology) else rng.choice(_of_role(topology, where))


def some_switches(topology: Topology, where: str, count: int, rng: random.Random) -> list[str]:
    """`count` switches drawn at random from a role, or from all switches.

    Raises:
        SpecError: the topology has no such role, or fewer switches of it.
    """
    switches = _of_role(topology, where)
    if count > len(switches):
        raise SpecError(f"the topology has {len(switches)} switches that are {where}, found switches={count}")
    return rng.sample(switches, count)


def _names(topology: Topology) -> list[str]:
    return [switch.name for switch in topology.switches]


def _of_role(topology: Topology, where: str) -> list[str]:
    switches = [switch.name for switch in topology.switches if where in (ALL, switch.role)]
    if not switches:
        first = _names(topology)[0]
        roles = ", ".join(dict.fromkeys(switch.role for switch in topology.switches))
        raise SpecError(f"the topology has no {where!r}; a switch is {first}, and roles are {roles}")
    return switches
