# SPDX-License-Identifier: Apache-2.0
"""Entries for source-guided adaptive routing (Spritz §III): switch roles, the ECMP tables of the first and
second role, and default routes.

A switch has the first role for packets of its hosts, and chooses their first link; in the second role it
chooses the second link of a path. Lists of ports have the ids FIRST_FAR (first role), FIRST_NEAR (first role,
destination in the switch's group) and SECOND. A path *goes on* after a first link if the next switch has the
second role. Two classes of the coarse-grained mode (§III-D), all paths and non-minimal paths, have the same
lists: as in Valiant routing, a path drawn as non-minimal may be minimal. The EV (entropy value) of a packet
is its UDP source port, which names its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network

from tailrace.p4rt.entities import P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.schemes.blocks.entries import (
    ENTRIES_CACHED,
    configuration,
    default_action,
    fitting,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.resolved import EntryPlan
from tailrace.topology.paths.bounded import BoundedPaths

PROGRAM = "spritz"

MODES = ("minimal", "steered", "class", "random", "ugal-l")
"""How switches choose the next hop, as in SpritzMode_t of the P4 source: by minimal paths, by the EV of each
packet (steered), by classes of paths, at random hop by hop, or by queue lengths (UGAL-L).
"""

MINIMAL_MODE, STEERED, CLASS, RANDOM, UGAL_L_MODE = MODES

FIRST_FAR, FIRST_NEAR, SECOND = range(3)

_CLASSES = ("ALL", "NONMINIMAL")
"""Classes of paths with lists of ports; minimal paths use the next hops of the route."""

_TAGGED = ("MINIMAL", "NONMINIMAL")
"""Classes of paths that have a VLAN tag."""


@dataclass(frozen=True, slots=True)
class BoundedPlan(EntryPlan):
    """A plan for the program `spritz`.

    paths: bounded simple paths (loop-free paths of bounded length)
    mode: one of MODES
    host_marks: whether packets of hosts with the DSCP `STEERED` follow their EV (entropy value) in every mode
    """

    paths: BoundedPaths
    mode: str
    host_marks: bool


@dataclass(frozen=True, slots=True)
class _List:
    """A list of ports for a role; `near`: whether it is for destinations in the switch's group."""

    id: int
    role: str
    near: bool
    ports: tuple[int, ...]


def entities(plan: BoundedPlan) -> Iterator[P4Entity]:
    """The entries of a switch, in the order in which they are written: routes last.

    Raises:
        IntentError: a value does not fit the program.
    """
    yield from configuration(plan)
    mode = plan.program.enum("SpritzMode_t", plan.mode.upper().replace("-", "_"))
    yield default_action("spritz_config", "set_spritz", mode=mode, host_marks=int(plan.host_marks))
    if plan.mode == CLASS:
        yield from _tags(plan)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from _second_role(plan)
    yield from _path_lists(plan)
    yield from _destinations(plan)
    yield from routes(plan)


def _tags(plan: BoundedPlan) -> Iterator[P4Entity]:
    """The path class of each VLAN tag; packets without a tag use the default table."""
    for name in _TAGGED:
        yield P4TableEntry(
            "vlan_classes",
            match=P4TableMatch(vid=plan.program.enum("VlanId_t", name)),
            action=P4TableAction("vlan_class", **{"class": plan.program.enum("PathClass_t", name)}),
        )


def _second_role(plan: BoundedPlan) -> Iterator[P4Entity]:
    """Matches packets that come directly from their first switch and for which this switch chooses the second
    link.
    """
    paths, name = plan.paths, plan.switch.name
    for port, peer in plan.topology.ports_of(name).items():
        if peer.kind == "switch" and paths.goes_on(peer.name, peer.port, near=False):
            for prefix in plan.topology.prefixes_of(peer.name):
                yield P4TableEntry(
                    "second_role",
                    match=P4TableMatch(ingress_port=port, src=str(prefix)),
                    action=P4TableAction("second"),
                )


def _lists(plan: BoundedPlan) -> Iterator[_List]:
    """The lists of a switch. An empty list gets no entry, so that packets use the default table."""
    tables = plan.paths.ports(plan.switch.name)
    yield _List(FIRST_FAR, "FIRST", False, tables.first_far)
    yield _List(FIRST_NEAR, "FIRST", True, tables.first_near)
    yield _List(SECOND, "SECOND", False, tables.second)


def _path_lists(plan: BoundedPlan) -> Iterator[P4Entity]:
    paths, program = plan.paths, plan.program
    for path_list in _lists(plan):
        for slot, port in enumerate(path_list.ports):
            goes_on = path_list.role == "FIRST" and paths.goes_on(plan.switch.name, port, near=path_list.near)
            yield P4TableEntry(
                "path_slots",
                match=P4TableMatch(list=path_list.id, slot=slot),
                action=P4TableAction(
                    "path_slot",
                    port=port,
                    goes_on=int(goes_on),
                    links=_max_links_after(paths.max_links, path_list, goes_on=goes_on),
                ),
            )
        for name in _CLASSES if path_list.ports else ():
            yield P4TableEntry(
                "path_lists",
                match=P4TableMatch(
                    role=program.enum("Role_t", path_list.role),
                    near=int(path_list.near),
                    **{"class": program.enum("PathClass_t", name)},
                ),
                action=P4TableAction("path_list", list=path_list.id, size=len(path_list.ports)),
            )


def _max_links_after(max_links: int, path_list: _List, *, goes_on: bool) -> int:
    """The most links, from this switch on, of a path through a port of a list.

    max_links: the most links of any path
    goes_on: whether the next switch has the second role for such packets
    """
    if path_list.near:
        # within a group: the direct link, or two links if the group has a third switch
        return min(2, len(path_list.ports))
    if path_list.role == "SECOND":
        return max_links - 1
    # in a network with groups, the next switch chooses only if the first link was within the group
    return max_links if goes_on else max_links - 1


def _destinations(plan: BoundedPlan) -> Iterator[P4Entity]:
    """The default table: a static minimal next hop towards each other reachable switch."""
    paths, name = plan.paths, plan.switch.name
    checked_links = set[int]()
    for leaf in plan.topology.leaves:
        port = paths.default_port(name, leaf) if leaf != name else None
        links = paths.default_links(name, leaf)
        if port is None or links is None:
            continue
        if links not in checked_links:
            checked_links.add(fitting(plan, "length of a path", "destination", "links", links))
        near = int(paths.is_near(name, leaf))
        for prefix in plan.topology.prefixes_of(leaf):
            yield _destination(prefix, near, links, port)


@lru_cache(ENTRIES_CACHED)
def _destination(prefix: IPv4Network, near: int, links: int, port: int) -> P4TableEntry:
    return P4TableEntry(
        "destinations",
        match=P4TableMatch(dst=str(prefix)),
        action=P4TableAction("destination", near=near, links=links, port=port),
    )
