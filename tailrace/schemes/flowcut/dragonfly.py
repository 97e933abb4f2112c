# SPDX-License-Identifier: Apache-2.0
"""Flowcut in the switches of a Dragonfly: as elsewhere, but new flowcuts choose among its paths."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import Plan, group_members, port_roles, routes
from tailrace.schemes.dragonfly.app import legs, path_config
from tailrace.schemes.flowcut import app as flowcut


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last.

    Raises:
        IntentError: a value does not fit the program.
    """
    yield from flowcut.settings(plan)
    yield path_config(plan)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from _next_hop_ports(plan)
    yield from legs(plan)
    yield from routes(plan)


def _next_hop_ports(plan: Plan) -> Iterator[P4Entity]:
    """Where a flow in flight may stay."""
    for group in plan.groups.groups:
        for port in group.ports:
            yield P4TableEntry(
                "next_hop_ports",
                match=P4TableMatch(toward=group.id, port=port),
                action=P4TableAction("next_hop"),
            )
