# SPDX-License-Identifier: Apache-2.0
"""ECMP, random spraying and Hermes: a hash, chance or the NIC chooses; nothing to configure beyond what all
programs have.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import Plan, configuration, group_members, port_roles, routes


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last."""
    yield from configuration(plan)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from routes(plan)
