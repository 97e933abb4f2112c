# SPDX-License-Identifier: Apache-2.0
"""Flowcut in the switches of a Dragonfly, where new flowcuts choose among the paths of dragonfly.app."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import group_members, port_roles, routes
from tailrace.schemes.dragonfly.app import path_config, path_entries
from tailrace.schemes.resolved import DragonflyPaths, EntryPlan

PROGRAM = "flowcut_dragonfly"


def entities(
    plan: EntryPlan, scheme_entities: Iterable[P4Entity], paths: DragonflyPaths
) -> Iterator[P4Entity]:
    """The entries of a switch, in the order of writing: `scheme_entities` first, routes last."""
    yield from scheme_entities
    yield path_config(plan, paths)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from _next_hop_ports(plan)
    yield from path_entries(plan)
    yield from routes(plan)


def _next_hop_ports(plan: EntryPlan) -> Iterator[P4Entity]:
    """The ports of each group, which a flow with packets in flight may keep."""
    for group in plan.groups.groups:
        for port in group.ports:
            yield P4TableEntry(
                "next_hop_ports",
                match=P4TableMatch(toward=group.id, port=port),
                action=P4TableAction("next_hop"),
            )
