# SPDX-License-Identifier: Apache-2.0
"""Entries of RLB: thresholds and times, next hops, ids of leaves, and replication of warnings.

A *warning* is a message to upstream switches that PFC is about to pause a path. A *slot* is a position in a
next-hop group, which has a port. A leaf is a switch with hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.p4rt.entities import (
    P4CloneSessionEntry,
    P4Entity,
    P4MulticastGroupEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from tailrace.schemes.blocks.entries import (
    configuration,
    default_action,
    fitting,
    flowcell_config,
    flowlet_config,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.blocks.pfc import ROOM_PACKETS
from tailrace.schemes.drill import DrillConfig, candidates, remembering
from tailrace.schemes.errors import IntentError
from tailrace.schemes.hermes import HermesConfig
from tailrace.schemes.letflow import ALL, LetflowConfig
from tailrace.schemes.presto import PrestoConfig
from tailrace.schemes.resolved import EntryPlan, Resolved
from tailrace.spec.constants import NS_BITS
from tailrace.topology.timing import fabric_rate_bps, sending_ns

PRESTO, LETFLOW, DRILL, HERMES = VARIANTS = (
    PrestoConfig.name,
    LetflowConfig.name,
    DrillConfig.name,
    HermesConfig.name,
)
NO_LIMIT, FIXED, DYNAMIC = LIMITS = ("none", "fixed", "dynamic")
# values of `last`, the path of a packet at the limit of recirculations: the best path p; any path not warned
BEST, OPEN = LASTS = ("p", "open")
DERIVATIVE, THRESHOLD = WARNINGS = ("derivative", "threshold")

FIRST_SESSION = 256
"""Clone session of port 0; that of port p is FIRST_SESSION + p."""

UPSTREAM_GROUP = 1
"""Multicast group of all ports to switches, through which warnings are forwarded."""

FIRST_RELAY = 1024
"""Multicast group of port 0, with a copy of a warning for each leaf; that of port p is FIRST_RELAY + p."""

_PORTS_A_PART, _PORT_BITS, _PARTS = 16, 16, 4
"""The action `set_next_hops` has _PARTS parameters with _PORTS_A_PART ports of _PORT_BITS bits each."""

_ONE = 1 << 16
"""1 in 16.16 fixed point."""


class RlbSettings(Resolved, frozen=True, kw_only=True):
    """The resolved parameters of RLB (declaration.RlbConfig has the keys).

    stay_ns: idle time up to which a moved flow stays on its new path
    last: BEST or OPEN; most: maximum number of recirculations of a packet, with the limit FIXED
    fault: recirculations per packet above which a port counts as faulty, in intervals of fault_ns; 0: off
    hold_ns: how long the controller then does not use the port
    """

    variant: str
    warn: str
    pause_bytes: int
    warn_bytes: int
    dt_ns: int
    flows: int
    margin_ns: int
    valid_ns: int
    probe_ns: int
    keep_ns: int
    stay_ns: int
    limit: str
    last: str
    most: int
    fault: int
    fault_ns: int
    hold_ns: int
    cell_bytes: int
    gap_ns: int
    tiers: str
    memory: str


def entities(plan: EntryPlan, config: RlbSettings) -> Iterator[P4Entity]:
    """The entries of a switch, in the order of writing: routes last.

    Raises:
        IntentError: a value does not fit the program, or the network is too large for it.
    """
    if config.variant == DRILL:
        plan = remembering(plan, config.memory)
    _check_sizes(plan)
    yield from _replication(plan)
    yield from configuration(plan)
    yield _warning_config(plan, config)
    yield _recirculation_config(plan, config)
    yield _probe_config(plan, config)
    yield _failure_config(plan, config)
    yield from _selector(plan, config)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from _next_hops(plan)
    yield from _leaves(plan)
    yield from routes(plan)


def _fabric_ports(plan: EntryPlan) -> list[int]:
    ports = plan.topology.ports_of(plan.switch.name).items()
    return sorted(port for port, peer in ports if peer.kind == "switch")


def _check_sizes(plan: EntryPlan) -> None:
    """Raises IntentError if the network has more leaves, ports or next hops than the program supports."""
    name = plan.switch.name
    ports = plan.program.register_size("port_warned_until_ticks")
    leaves = plan.program.register_size("echo_port")  # has a cell for each leaf that measures RTTs
    max_hops = _PARTS * _PORTS_A_PART
    if len(plan.topology.leaves) > leaves:
        raise IntentError(f"scheme rlb: {plan.topology.spec} has more than {leaves} leaves")
    if any(port >= ports for port in _fabric_ports(plan)):
        raise IntentError(f"scheme rlb: {name} has links to switches at ports above {ports - 1}")
    if any(len(group.slots) > max_hops for group in plan.groups.groups):
        raise IntentError(f"scheme rlb: {name} has more than {max_hops} equal next hops")


def _replication(plan: EntryPlan) -> Iterator[P4Entity]:
    """A clone session for each port to a switch, and a multicast group of all these ports. A switch that is
    no leaf also has, for each such port, a multicast group that recirculates a copy for each leaf behind the
    port.

    Warnings have priority over data, except on BMv2: it does not support a class of service in clone
    sessions, so warnings wait behind data.
    """
    ports = _fabric_ports(plan)
    priority = 0 if plan.target.name == "bmv2" else plan.program.constant("priority_queues") - 1
    for port in ports:
        yield P4CloneSessionEntry(FIRST_SESSION + port, class_of_service=priority, replicas=[port])
    if ports:
        yield P4MulticastGroupEntry(UPSTREAM_GROUP, replicas=ports)
    mirror = plan.program.constant("mirror_port")  # packets sent to this port recirculate
    for port in () if plan.switch.name in plan.topology.leaves else ports:
        # (egress port, instance): the instance becomes egress_rid, which is 0 for packets that are no copies
        copies = [(mirror, leaf_id + 1) for leaf_id in _leaves_behind(plan, port)]
        if copies:
            yield P4MulticastGroupEntry(FIRST_RELAY + port, replicas=copies)


def _leaves_behind(plan: EntryPlan, port: int) -> list[int]:
    """The ids of the leaves towards which a port is a next hop."""
    of_leaf = plan.groups.of_leaf
    leaves = enumerate(plan.topology.leaves)
    return [leaf_id for leaf_id, leaf in leaves if leaf in of_leaf and port in of_leaf[leaf].ports]


def _warning_config(plan: EntryPlan, config: RlbSettings) -> P4Entity:
    target = plan.target
    leaves, no_leaf = list(plan.topology.leaves), plan.program.constant("leaf_all")
    # a switch that is no leaf warns of the path to all leaves behind it, so its own number is leaf_all
    valid_ticks = target.ticks(config.valid_ns)
    values = {
        "dt_ticks": target.ticks(config.dt_ns),
        "warn_bytes": config.warn_bytes,
        "pause_bytes": config.pause_bytes,
        "margin_ticks": target.ticks(config.margin_ns),
        "valid_ticks": valid_ticks,
        "refresh_ticks": valid_ticks // 2,
        "stay_ticks": target.ticks(config.stay_ns) if config.stay_ns else 0,
    }
    return default_action(
        "warning_config",
        "set_warnings",
        own_leaf=leaves.index(plan.switch.name) if plan.switch.name in leaves else no_leaf,
        threshold_alone=int(config.warn == THRESHOLD),
        first_session=FIRST_SESSION,
        upstream_group=UPSTREAM_GROUP,
        first_relay=FIRST_RELAY,
        **{name: fitting(plan, name, "set_warnings", name, value) for name, value in values.items()},
    )


def _recirculation_config(plan: EntryPlan, config: RlbSettings) -> P4Entity:
    """Limits of recirculations, and `usual_ticks`, the delay of a recirculation that the program assumes if
    it has measured none within `trust_ticks`.
    """
    target = plan.target
    rate_bps = fabric_rate_bps(plan.topology)
    # bytes per tick from all flows of an incast but one, in 16.16 fixed point: bits/s * ns / NS_BITS is bytes
    inflow = (config.flows - 1) * rate_bps * target.tick_ns * _ONE // NS_BITS
    values = {
        "inflow": inflow,
        "usual_ticks": target.ticks(sending_ns(config.frame_bytes, rate_bps)),
        "trust_ticks": target.ticks(config.keep_ns),
    }
    return default_action(
        "recirculation_config",
        "set_recirculation",
        dynamic=int(config.limit == DYNAMIC),
        last_open=int(config.last == OPEN),
        most=config.most,
        room=ROOM_PACKETS,  # packets that may recirculate at a time
        **{name: fitting(plan, name, "set_recirculation", name, value) for name, value in values.items()},
    )


def _probe_config(plan: EntryPlan, config: RlbSettings) -> P4Entity:
    """Only leaves (switches with hosts) measure RTTs by probes."""
    is_leaf = plan.switch.name in plan.topology.leaves
    period = plan.target.ticks(config.probe_ns) if is_leaf else 0
    keep = plan.target.ticks(config.keep_ns)
    return default_action(
        "probe_config",
        "set_probes",
        period_ticks=fitting(plan, "probe", "set_probes", "period_ticks", period),
        keep_ticks=fitting(plan, "age", "set_probes", "keep_ticks", keep),
    )


def _failure_config(plan: EntryPlan, config: RlbSettings) -> P4Entity:
    interval = plan.target.ticks(config.fault_ns) if config.fault else 0
    return default_action(
        "failure_config",
        "set_failures",
        interval_ticks=fitting(plan, "interval", "set_failures", "interval_ticks", interval),
        most=config.fault,
    )


def _selector(plan: EntryPlan, config: RlbSettings) -> Iterator[P4Entity]:
    """The entries of the path selector that RLB extends."""
    if config.variant == PRESTO:
        yield flowcell_config(plan, config.cell_bytes)
    elif config.variant == LETFLOW:
        yield flowlet_config(plan, config.gap_ns, everywhere=config.tiers == ALL)
    elif config.variant == DRILL:
        yield from candidates(plan)


def next_hop_arguments(ports: tuple[int, ...]) -> dict[str, int]:
    """The parameters of `set_next_hops`: the ports of the slots, 16 bits each, 16 in each of `ports0` to
    `ports3`; their count; and the least prime not below the count, the modulus with which Algorithm 1 steps
    through the slots (p4src/rlb/reroute.p4).
    """
    parts = dict.fromkeys((f"ports{part}" for part in range(_PARTS)), 0)
    for slot, port in enumerate(ports):
        part, position = divmod(slot, _PORTS_A_PART)
        parts[f"ports{part}"] |= port << position * _PORT_BITS
    count = len(ports)
    prime = next(n for n in range(max(count, 2), 2 * count + 2) if all(n % m for m in range(2, n)))
    return {"count": count, "around": prime, **parts}


def _next_hops(plan: EntryPlan) -> Iterator[P4Entity]:
    for group in plan.groups.groups:
        action = P4TableAction("set_next_hops", **next_hop_arguments(group.slots))
        yield P4TableEntry("next_hops", match=P4TableMatch(group=group.id), action=action)


def _leaves(plan: EntryPlan) -> Iterator[P4Entity]:
    """The id of each leaf by its prefixes, and the next-hop group by leaf id."""
    for leaf_id, leaf in enumerate(plan.topology.leaves):
        group = plan.groups.of_leaf.get(leaf)
        if group is None:
            continue
        yield P4TableEntry(
            "leaf_groups",
            match=P4TableMatch(leaf=leaf_id),
            action=P4TableAction("leaf_group", group=group.id),
        )
        for prefix in plan.topology.prefixes_of(leaf):
            yield P4TableEntry(
                "leaves", match=P4TableMatch(dst=str(prefix)), action=P4TableAction("leaf", leaf=leaf_id)
            )
