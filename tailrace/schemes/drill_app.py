# SPDX-License-Identifier: Apache-2.0
"""DRILL: the slots once more for each of the three candidates."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import Plan, configuration, group_members, port_roles, routes

CANDIDATES = ("remembered_members", "first_members", "other_members")
"""Tables, one a candidate."""


def candidates(plan: Plan) -> Iterator[P4Entity]:
    """The slots of each candidate."""
    for table in CANDIDATES:
        yield from group_members(plan, table, "sampled")


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last."""
    yield from configuration(plan)
    yield from port_roles(plan)
    yield from candidates(plan)
    yield from group_members(plan)
    yield from routes(plan)
