# SPDX-License-Identifier: Apache-2.0
"""Computes the intent, the entries that each switch must have, from topology, scheme and target. The same
input always gives the same intent.
"""

from __future__ import annotations

from collections.abc import Collection

from tailrace.p4rt import digests, programs
from tailrace.p4rt.entities import P4Entity
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import Target
from tailrace.schemes.blocks import channels, limits, pfc
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan, Resolved
from tailrace.schemes.watch import LinkEnd
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down


def intent(
    topology: Topology,
    scheme: Resolved,
    target: Target,
    down: Down = frozenset(),
    suppressed: Collection[LinkEnd] = frozenset(),
    names: Collection[str] | None = None,
) -> dict[str, SwitchIntent]:
    """The intent of every switch while the links in `down` are dead, by the switch's name.

    Args:
        down: dead links, by (switch, port) of either end.
        suppressed: (switch, port) that the switch does not use as a next hop if it has others; for schemes
            whose switches report faulty paths (RLB §IV-B.2).
        names: switches to include; None: all.

    Raises:
        IntentError: topology, scheme and target are incompatible.
        P4ProgramError: a compiled program is missing.
    """
    if scheme.is_foreign:
        return {each.switch: each for each in scheme.intents() if names is None or each.switch in names}
    config = scheme.at(topology, down)
    program = programs.load(config.program)
    intents: dict[str, SwitchIntent] = {}
    for plan in config.plans(topology, program, target, down, suppressed):
        if names is not None and plan.switch.name not in names:
            continue
        entities = (
            *digests.entries(program),
            *pfc.emulation(plan),
            *channels.entries(plan),
            *limits.entries(plan),
            *config.entities(plan),
        )
        _check_sizes(plan, entities)
        intents[plan.switch.name] = SwitchIntent(plan.switch.name, config.program, entities)
    return intents


def _check_sizes(plan: EntryPlan, entities: tuple[P4Entity, ...]) -> None:
    """Raises IntentError if a table is too small for its entries."""
    counts: dict[str, int] = {}
    for entity in entities:
        table = getattr(entity, "table_id", "")
        if table and not getattr(entity, "is_default_action", False):
            counts[table] = counts.get(table, 0) + 1
    for table, count in counts.items():
        size = plan.program.table(table).size
        if count > size:
            raise IntentError(
                f"topology {plan.topology.spec}: {plan.switch.name} needs {count} entries in {table},"
                f" which has room for {size}"
            )
