# SPDX-License-Identifier: Apache-2.0
"""Entries for routing in a Dragonfly: next hops, minimal paths, detours, and the rule that chooses a path.

A detour is a path through a third group (Valiant routing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tailrace.p4rt.entities import P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import Target
from tailrace.schemes.blocks.entries import (
    configuration,
    default_action,
    flowlet_config,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.dragonfly.groups import DragonflyRouting, routing_of
from tailrace.schemes.dragonfly.paths import MINIMAL, SHARE_STEPS
from tailrace.schemes.resolved import DragonflyPaths, EntryPlan, Resolved
from tailrace.schemes.watch import LinkEnd
from tailrace.topology import Topology
from tailrace.topology.paths.dragonfly import MinimalRoutes
from tailrace.topology.paths.shapes import shape_of
from tailrace.topology.paths.shortest import Down

PROGRAM = "dragonfly"


@dataclass(frozen=True, slots=True)
class DragonflyPlan(EntryPlan):
    """A plan for the programs `dragonfly` and `flowcut_dragonfly`; `routing`: next-hop groups and paths."""

    routing: DragonflyRouting


class MayDetour(Resolved, frozen=True, kw_only=True):
    """A scheme that chooses among the paths of a Dragonfly if its `dragonfly_paths` is set."""

    def channels(self, topology: Topology) -> int:
        paths, shape = self.dragonfly_paths, shape_of(topology)
        if paths is None:
            return 0
        return (shape.minimal if paths.rule == MINIMAL else shape.longest).links

    def plans(
        self,
        topology: Topology,
        program: P4Program,
        target: Target,
        down: Down,
        suppressed: Collection[LinkEnd],
    ) -> Iterator[EntryPlan]:
        if self.dragonfly_paths is None:
            yield from super().plans(topology, program, target, down, suppressed)
            return
        usual_routes = MinimalRoutes(topology)
        routes = MinimalRoutes(topology, down) if down else usual_routes
        for switch in topology.switches:
            routing = routing_of(topology, usual_routes, routes, switch.name)
            yield DragonflyPlan(topology, switch, routing.groups, program, target, self, routing)


def entities(plan: EntryPlan, paths: DragonflyPaths) -> Iterator[P4Entity]:
    """The entries of a switch with the program `dragonfly`, in the order of writing: routes last.

    Raises:
        IntentError: the flowlet gap is too long for the program.
    """
    yield from configuration(plan)
    yield path_config(plan, paths)
    yield flowlet_config(plan, paths.gap_ns)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from path_entries(plan)
    yield from routes(plan)


def path_config(plan: EntryPlan, paths: DragonflyPaths) -> P4Entity:
    """Sets the rule by which paths are chosen, and the unit (packet, flow, flowlet) that keeps a path."""
    program = plan.program
    return default_action(
        "path_config",
        "set_paths",
        rule=program.enum("PathRule_t", paths.rule.replace("-", "_").upper()),
        grain=program.enum("Grain_t", paths.grain.upper()),
        minimal_share=round(paths.minimal_share * SHARE_STEPS),
    )


def path_entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """Next hops of packets from switches of the same Dragonfly group, and all paths to other groups."""
    assert isinstance(plan, DragonflyPlan), "only programs for Dragonflies choose among paths"
    routing = plan.routing
    for toward, group in routing.onward.items():
        yield P4TableEntry(
            "onward_groups",
            match=P4TableMatch(toward=toward),
            action=P4TableAction("onward", group=group.id, size=len(group.slots)),
        )
    for list_index, links in enumerate(routing.detours):
        for slot, link in enumerate(links):
            yield P4TableEntry(
                "detours",
                match=P4TableMatch(list=list_index, slot=slot),
                action=P4TableAction("detour", port=link.port, group=link.group, links=link.links),
            )
    # first, count: the items of a list of detours that packets to this group must not take (FarGroup)
    for toward, far in routing.far.items():
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
                detours=len(routing.detours[far.detours]) - far.count,
            ),
        )
