# SPDX-License-Identifier: Apache-2.0
"""DRILL(2,1): the least loaded of two random next hops and the remembered best one (RLB §II-A.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.entries import configuration, fitting, group_members, port_roles, routes
from tailrace.schemes.blocks.groups import Groups, NextHopGroup
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext
from tailrace.spec import keys
from tailrace.topology import Topology

BY_GROUP, BY_DESTINATION = MEMORIES = ("group", "destination")
MEMORY = keys.choice(
    "memory",
    "for what the last choice is remembered: each group of next hops, or each destination host",
    MEMORIES,
    section="RLB §VI-A, [32]",
)

FIRST_HOST_GROUP = 1 << 15
"""With memory=destination, the id of a host's group is this number plus the host's number."""

CANDIDATES = ("remembered_members", "first_members", "other_members")
"""Tables of slots, one per candidate."""


@scheme
class DrillConfig(SchemeConfig, frozen=True, kw_only=True):
    """Every packet goes to the least loaded of two random next hops and the last choice."""

    name: ClassVar[str] = "drill"
    about: ClassVar[str] = "every packet goes to the least loaded of two random next hops and the last choice"
    memory: Annotated[str, MEMORY] = BY_GROUP

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedDrill:
        return self.resolved(ResolvedDrill, topology, context, program=self.name)


class ResolvedDrill(Resolved, frozen=True, kw_only=True):
    memory: str

    @property
    def dense_groups(self) -> bool:
        """Each slot must be a different port, so that two different slots are two different next hops."""
        return True

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        plan = remembering(plan, self.memory)
        yield from configuration(plan)
        yield from port_roles(plan)
        yield from candidates(plan)
        yield from group_members(plan)
        yield from routes(plan)


def remembering(plan: EntryPlan, memory: str) -> EntryPlan:
    """The plan; with memory=destination each host of another switch has a group, a copy of its leaf's group,
    since the program remembers a slot for each group.

    Raises:
        IntentError: there are too many hosts for the ids of groups.
    """
    if memory == BY_GROUP:
        return plan
    of_leaf = plan.groups.of_leaf
    of_host = {}
    for host in plan.topology.hosts:
        # restricted hosts are destinations of their own; a leaf has no group for itself
        group = of_leaf.get(host.name) or of_leaf.get(host.switch)
        if group is not None and host.switch != plan.switch.name:
            number = fitting(plan, "group", "to_group", "group", FIRST_HOST_GROUP + host.id)
            of_host[host.ip] = NextHopGroup(number, group.slots, group.ports)
    return replace(plan, groups=Groups((*plan.groups.groups, *of_host.values()), of_leaf, of_host))


def candidates(plan: EntryPlan) -> Iterator[P4Entity]:
    """The slots of all groups, once for each of the three candidates."""
    # `sampled` is the action of these tables; its parameter is the port
    for table in CANDIDATES:
        yield from group_members(plan, table, "sampled")
