# SPDX-License-Identifier: Apache-2.0
"""DRILL(2,1): the least loaded of two random next hops and the remembered best one (RLB §II-A.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from finsy.p4entity import P4Entity

from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import configuration, group_members, port_roles, routes
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext
from tailrace.topology import Topology

CANDIDATES = ("remembered_members", "first_members", "other_members")
"""Tables of slots, one per candidate."""


@scheme
class DrillConfig(SchemeConfig, frozen=True, kw_only=True):
    """Every packet goes to the least loaded of two random next hops and the last choice."""

    name: ClassVar[str] = "drill"
    about: ClassVar[str] = "every packet goes to the least loaded of two random next hops and the last choice"

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedDrill:
        return self.resolved(ResolvedDrill, topology, context, program=self.name)


class ResolvedDrill(Resolved, frozen=True, kw_only=True):
    @property
    def dense_groups(self) -> bool:
        """Each slot must be a different port, so that two different slots are two different next hops."""
        return True

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        yield from configuration(plan)
        yield from port_roles(plan)
        yield from candidates(plan)
        yield from group_members(plan)
        yield from routes(plan)


def candidates(plan: EntryPlan) -> Iterator[P4Entity]:
    """The slots of all groups, once for each of the three candidates."""
    # `sampled` is the action of these tables; its parameter is the port
    for table in CANDIDATES:
        yield from group_members(plan, table, "sampled")
