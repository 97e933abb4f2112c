# SPDX-License-Identifier: Apache-2.0
"""Entries that every program needs: port roles (what a port leads to), groups of next hops and their slots
(blocks.groups), routes, and configuration as default actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Network

from tailrace.p4rt.entities import P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan

ENTRIES_CACHED = 1 << 16
"""Cache size for entries of one kind, which switches share; an entry must therefore not be changed."""


def default_action(table: str, action: str, **args: int) -> P4TableEntry:
    """The entry that sets the default action of a table."""
    return P4TableEntry(table, is_default_action=True, action=P4TableAction(action, **args))


def fitting(plan: EntryPlan, what: str, action: str, param: str, value: int) -> int:
    """The value, after checking that an action parameter is wide enough for it.

    Args:
        plan: the data of the switch.
        what: name of the value in the error message.
        action, param: the action, and the name of its parameter.
        value: the value, in the parameter's unit.

    Raises:
        IntentError: the parameter is too narrow.
    """
    largest = plan.program.largest(action, param)
    if not 0 <= value <= largest:
        raise IntentError(
            f"scheme {plan.config.name}: {what} is {value} in units of the switch, expected at most {largest}"
        )
    return value


def common_entries(plan: EntryPlan, *scheme_entities: P4Entity) -> Iterator[P4Entity]:
    """The entries of a switch in the order of writing: the configuration that all schemes have,
    `scheme_entities`, port roles, groups, and routes.
    """
    yield from configuration(plan)
    yield from scheme_entities
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from routes(plan)


def flowlet_config(plan: EntryPlan, gap_ns: int, *, everywhere: bool = True) -> P4Entity:
    """Sets the gap after which a new flowlet begins.

    Args:
        everywhere: whether switches without hosts detect flowlets, too; else they use a hash of the flow.

    Raises:
        IntentError: the gap is too long for the program.
    """
    if not everywhere and plan.switch.name not in plan.topology.leaves:
        return default_action("flowlet_config", "no_flowlets")
    ticks = fitting(plan, "gap", "set_flowlet_gap", "gap_ticks", plan.target.ticks(gap_ns))
    return default_action("flowlet_config", "set_flowlet_gap", gap_ticks=ticks)


def flowcell_config(plan: EntryPlan, cell_bytes: int) -> P4Entity:
    """Sets the size of a flowcell, the part of a flow that stays on one path (Presto).

    Raises:
        IntentError: the size is too large for the program.
    """
    fit = fitting(plan, "cell", "set_flowcell", "cell_bytes", cell_bytes)
    return default_action("flowcell_config", "set_flowcell", cell_bytes=fit)


def configuration(plan: EntryPlan) -> Iterator[P4Entity]:
    """Configuration that all programs have: switch id, hash seed, queue limit, RED."""
    config = plan.config
    yield default_action(
        "switch_config",
        "set_switch",
        switch_id=fitting(plan, "switch id", "set_switch", "switch_id", plan.switch.id),
        hash_seed=fitting(plan, "seed", "set_switch", "hash_seed", config.hash_seed),
    )
    limit_bytes = config.queue_limit_bytes
    # trim: cut packets beyond the limit to their headers, instead of dropping them
    limit = "set_queue_trim" if config.trims else "set_queue_limit"
    yield default_action(
        "queue_config", limit, limit_bytes=fitting(plan, "queue limit", limit, "limit_bytes", limit_bytes)
    )
    red = config.red  # None: kmax_bytes is 0, which turns marking off
    yield default_action(
        "red_config",
        "set_red",
        kmin_bytes=0 if red is None else fitting(plan, "kmin", "set_red", "kmin_bytes", red.kmin_bytes),
        kmax_bytes=0 if red is None else fitting(plan, "kmax", "set_red", "kmax_bytes", red.kmax_bytes),
        pmax_permille=0 if red is None else red.pmax_permille,
    )


def port_roles(plan: EntryPlan) -> Iterator[P4Entity]:
    """Ports to switches are trusted; all others are host ports, the program's default. If the scheme has a
    source guard, ports of hosts in the topology accept only the hosts' addresses (schemes.blocks.limits).

    Programs for Dragonflies distinguish ports within a group from ports to other groups.
    """
    for port, peer in plan.topology.ports_of(plan.switch.name).items():
        if peer.kind == "switch":
            within = plan.topology.switch(peer.name).group == plan.switch.group
            role = "group_port" if plan.config.dragonfly_paths is not None and within else "fabric_port"
        elif plan.config.source_guard:
            role = "guarded_port"
        else:
            continue
        yield _role(role, port)


@lru_cache(ENTRIES_CACHED)
def _role(role: str, port: int) -> P4TableEntry:
    return P4TableEntry("port_role", match=P4TableMatch(ingress_port=port), action=P4TableAction(role))


def group_members(
    plan: EntryPlan, table: str = "group_members", action: str = "member"
) -> Iterator[P4Entity]:
    """The slots of every group, in a table with the key fields and parameter of `group_members`."""
    for group in plan.groups.groups:
        for slot, port in enumerate(group.slots):
            yield _member(table, action, group.id, slot, port)


@lru_cache(ENTRIES_CACHED)
def _member(table: str, action: str, group: int, slot: int, port: int) -> P4TableEntry:
    key, call = P4TableMatch(group=group, slot=slot), P4TableAction(action, port=port)
    return P4TableEntry(table, match=key, action=call)


def routes(plan: EntryPlan) -> Iterator[P4Entity]:
    """Routes to the hosts of the switch, to the prefixes of reachable leaves, and to hosts with a group."""
    for host in plan.topology.hosts_of(plan.switch.name):
        yield P4TableEntry(
            "ipv4_routes",
            match=P4TableMatch(dst=f"{host.ip}/32"),
            action=P4TableAction("to_host", port=host.port, dst_mac=host.mac),
        )
    for leaf, group in plan.groups.of_leaf.items():
        for prefix in plan.topology.prefixes_of(leaf):
            yield _to_group(prefix, group.id, len(group.slots))
    for address, group in plan.groups.of_host.items():
        yield _to_group(IPv4Network(address), group.id, len(group.slots))


@lru_cache(ENTRIES_CACHED)
def _to_group(prefix: IPv4Network, group: int, size: int) -> P4TableEntry:
    return P4TableEntry(
        "ipv4_routes",
        match=P4TableMatch(dst=str(prefix)),
        action=P4TableAction("to_group", group=group, size=size),
    )
