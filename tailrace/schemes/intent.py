# SPDX-License-Identifier: Apache-2.0
"""From topology, scheme and target to what each switch must hold; the same input gives the same intent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from finsy.p4entity import P4Entity

from tailrace.p4rt import digests, programs
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.programs import Program
from tailrace.p4rt.target import Target
from tailrace.schemes import drill_app as drill
from tailrace.schemes import ecmp_app as ecmp
from tailrace.schemes import letflow_app as letflow
from tailrace.schemes import presto_app as presto
from tailrace.schemes.blocks import entries as common
from tailrace.schemes.blocks import limits, pfc
from tailrace.schemes.blocks.groups import plan_groups, without
from tailrace.schemes.defaults import known, resolve
from tailrace.schemes.dragonfly import app as dragonfly
from tailrace.schemes.dragonfly.groups import plan_dragonfly
from tailrace.schemes.errors import IntentError
from tailrace.schemes.flowcut import app as flowcut
from tailrace.schemes.flowcut import dragonfly as flowcut_dragonfly
from tailrace.schemes.registry import BoundedConfig, FlowcutConfig, SchemeConfig
from tailrace.schemes.rlb import app as rlb
from tailrace.schemes.rlb.declaration import VARIANTS, RlbConfig
from tailrace.schemes.rlb.failures import End
from tailrace.schemes.spritz import app as spritz
from tailrace.topology import Switch, Topology, next_hops
from tailrace.topology.paths.bounded import BoundedPaths
from tailrace.topology.paths.default_routes import minimal_next_hops
from tailrace.topology.paths.dragonfly import Legs
from tailrace.topology.paths.restricted import with_restricted
from tailrace.topology.paths.shortest import Down

_APPS: dict[str, Callable[[common.Plan], Iterator[P4Entity]]] = {
    "ecmp": ecmp.entities,
    "spray": ecmp.entities,
    "letflow": letflow.entities,
    "presto": presto.entities,
    "drill": drill.entities,
    "hermes": ecmp.entities,
    **{RlbConfig(variant=variant).program: rlb.entities for variant in VARIANTS},
    "flowcut": flowcut.entities,
    "dragonfly": dragonfly.entities,
    "flowcut_dragonfly": flowcut_dragonfly.entities,
    "spritz": spritz.entities,
}


def intent(
    topology: Topology,
    scheme: SchemeConfig,
    target: Target,
    down: Down = frozenset(),
    load: Callable[[str], Program] = programs.load,
    out: Collection[End] = frozenset(),
) -> dict[str, SwitchIntent]:
    """What every switch must hold while the links in `down` are dead, by the switch's name.

    Args:
        down: dead links, by (switch, port) of either end. Schemes over the program `spritz` leave it to the
            senders to avoid them, unless `repair` is on (Spritz §V-D).
        load: where programs come from.
        out: (switch, port) that the switch itself leaves out of its next hops where it has others; of the
            schemes that tell of such ports (RLB §IV-B.2).

    Raises:
        IntentError: they do not go together.
        ProgramError: a compiled program is missing.
    """
    config = resolve(scheme, topology, down)
    program = load(config.program)
    found: dict[str, SwitchIntent] = {}
    for plan in _plans(topology, config, program, target, down, out):
        switch = plan.switch
        if isinstance(config, FlowcutConfig) and config.variant != "nic" and not found:
            flowcut.check(plan)
        entities = (*digests.entries(program), *pfc.emulation(plan), *limits.entries(plan))
        entities = (*entities, *_APPS[config.program](plan))
        _check_sizes(plan, entities)
        found[switch.name] = SwitchIntent(switch.name, config.program, entities)
    return found


def _plans(
    topology: Topology,
    config: SchemeConfig,
    program: Program,
    target: Target,
    down: Down,
    out: Collection[End],
) -> Iterator[common.Plan]:
    """What the entries of each switch follow from."""
    if isinstance(config, BoundedConfig) and config.mode:
        yield from _bounded_plans(topology, config, program, target, down if config.repair else frozenset())
        return
    if config.dragonfly_paths is not None:
        usual_legs = Legs(topology)
        legs = Legs(topology, down) if down else usual_legs
        for switch in topology.switches:
            place = plan_dragonfly(topology, usual_legs, legs, switch.name)
            yield common.Plan(topology, switch, place.groups, program, target, config, place)
        return
    shortest = next_hops(topology)
    usual = with_restricted(topology, shortest)
    current = with_restricted(topology, next_hops(topology, down), shortest) if down else usual
    for switch in topology.switches:
        own_out = frozenset(port for name, port in out if name == switch.name)
        groups = plan_groups(
            usual[switch.name],
            without(current[switch.name], own_out),
            _own_down(topology, switch, down) | own_out,
            dense=config.dense_groups,
        )
        yield common.Plan(topology, switch, groups, program, target, config)


def _bounded_plans(
    topology: Topology, config: BoundedConfig, program: Program, target: Target, down: Down
) -> Iterator[common.Plan]:
    """Groups hold all minimal next hops, in a Dragonfly those from hosts."""
    paths = BoundedPaths(topology, down, known(config.frame_bytes))
    usual = minimal_next_hops(topology)
    current = minimal_next_hops(topology, down) if down else usual
    for switch in topology.switches:
        groups = plan_groups(usual[switch.name], current[switch.name], _own_down(topology, switch, down))
        yield common.Plan(topology, switch, groups, program, target, config, bounded=paths)


def _own_down(topology: Topology, switch: Switch, down: Down) -> frozenset[int]:
    """The dead ports of a switch."""
    return frozenset(
        port
        for port, peer in topology.ports_of(switch.name).items()
        if (switch.name, port) in down or (peer.name, peer.port) in down
    )


def _check_sizes(plan: common.Plan, entities: tuple[P4Entity, ...]) -> None:
    """Refuses more entries than a table has room for."""
    counts: dict[str, int] = {}
    for entity in entities:
        table = getattr(entity, "table_id", "")
        if table and not getattr(entity, "is_default_action", False):
            counts[table] = counts.get(table, 0) + 1
    for table, count in counts.items():
        size = plan.program.table(table).size
        if count > size:
            raise IntentError(
                f"topology {plan.topology.words}: {plan.switch.name} needs {count} entries in {table},"
                f" which has room for {size}"
            )
