# SPDX-License-Identifier: Apache-2.0
"""Routing of a Dragonfly: legs of ways through it, minimal paths, detours, and how to choose among them."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import (
    Plan,
    configuration,
    default_action,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.defaults import known
from tailrace.schemes.dragonfly.groups import DragonflyPlan
from tailrace.schemes.dragonfly.paths import SHARE_STEPS
from tailrace.schemes.letflow_app import flowlet_config
from tailrace.schemes.registry import DragonflyPaths


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last.

    Raises:
        IntentError: the gap is too long for the program.
    """
    yield from configuration(plan)
    yield path_config(plan)
    yield flowlet_config(plan, known(paths_of(plan).gap_ns))
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from legs(plan)
    yield from routes(plan)


def paths_of(plan: Plan) -> DragonflyPaths:
    """How paths are chosen, in a program of Dragonflies."""
    return known(plan.config.dragonfly_paths)


def legs_of(plan: Plan) -> DragonflyPlan:
    """The switch's place in its Dragonfly, in a program of them."""
    return known(plan.dragonfly)


def path_config(plan: Plan) -> P4Entity:
    """The rule, and what keeps a path."""
    paths, program = paths_of(plan), plan.program
    return default_action(
        "path_config",
        "set_paths",
        rule=program.enum("PathRule_t", paths.rule.replace("-", "_").upper()),
        grain=program.enum("Grain_t", paths.grain.upper()),
        minimal_share=round(paths.minimal_share * SHARE_STEPS),
    )


def legs(plan: Plan) -> Iterator[P4Entity]:
    """Next hops of packets from the same group, and all paths to other groups."""
    own = legs_of(plan)
    for toward, group in own.onward.items():
        yield P4TableEntry(
            "onward_groups",
            match=P4TableMatch(toward=toward),
            action=P4TableAction("onward", group=group.id, size=len(group.slots)),
        )
    for number, links in enumerate(own.detours):
        for slot, link in enumerate(links):
            yield P4TableEntry(
                "detours",
                match=P4TableMatch(list=number, slot=slot),
                action=P4TableAction("detour", port=link.port, group=link.group, links=link.links),
            )
    for toward, far in own.far.items():
        for slot, link in enumerate(far.paths):
            yield P4TableEntry(
                "minimal_paths",
                match=P4TableMatch(toward=toward, slot=slot),
                action=P4TableAction("minimal", port=link.port, links=link.links),
            )
        yield P4TableEntry(
            "far_groups",
            match=P4TableMatch(toward=toward),
            action=P4TableAction(
                "far",
                paths=len(far.paths),
                list=far.detours,
                first=far.first,
                count=far.count,
                detours=len(own.detours[far.detours]) - far.count,
            ),
        )
