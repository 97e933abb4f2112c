# SPDX-License-Identifier: Apache-2.0
"""The entries of an intent as schemes.spritz.walk takes those of switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from tailrace.p4rt import programs
from tailrace.p4rt.entities import P4TableEntry
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import Target
from tailrace.schemes import intent as of_scheme
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.resolved import Resolved
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.endpoints import EndpointPaths
from tailrace.schemes.spritz.walk import ALL, ROLES, EvWalker, SteeredTables
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down

SMALL = (
    *("dragonfly:p=2,a=2,h=1", "dragonfly:p=1,a=4,h=2,groups=3", "dragonfly:p=1,a=3,h=2,groups=5"),
    *("dragonfly:p=1,a=3,h=1,groups=1", "dragonfly:p=1,a=1,h=3", "slim-fly:p=1,q=3", "slim-fly:p=2,q=4"),
    *("leaf-spine:leaves=3,spines=2,hosts=1", "fat-tree:k=4"),
)
"""One of each kind, as small as can be: for schemes over bounded simple paths."""


def intent(
    topology: Topology,
    scheme: SchemeConfig | Resolved,
    target: Target,
    down: Down = frozenset(),
    **more: Any,
) -> dict[str, SwitchIntent]:
    """What switches must hold under a scheme as it was given, where nothing else is known."""
    resolved = scheme if isinstance(scheme, Resolved) else resolve(scheme, topology)
    return of_scheme.intent(topology, resolved, target, down, **more)


def endpoint_paths(topology: Topology, scheme: SchemeConfig) -> EndpointPaths:
    """The EV lists of endpoints under such a scheme."""
    resolved = resolve(scheme, topology)
    assert isinstance(resolved, ResolvedBounded)
    return resolved.paths(topology)


Row = tuple[dict[str, int | str], str, dict[str, int | str]]


def rows(intended: SwitchIntent, table: str) -> Iterator[Row]:
    """Match, action and its arguments of each entry of a table."""
    for entity in intended.entities:
        if isinstance(entity, P4TableEntry) and entity.table_id == table and entity.match is not None:
            alias, args = (getattr(entity.action, name) for name in ("name", "args"))
            yield dict(entity.match), alias, args


def default(intended: SwitchIntent, table: str) -> tuple[str, dict[str, int]]:
    """The default action of a table without a key, and its arguments."""
    for entity in intended.entities:
        if isinstance(entity, P4TableEntry) and entity.table_id == table and entity.is_default_action:
            alias, args = (getattr(entity.action, name) for name in ("name", "args"))
            return alias, args
    raise KeyError(table)


def planned_tables(intended: SwitchIntent) -> SteeredTables:
    """The tables of one switch."""
    program = programs.load(intended.program)
    role_of = {program.enum("Role_t", name): name for name in ROLES}
    tables = SteeredTables()
    for match, action, _ in rows(intended, "port_role"):
        if action != "guarded_port":
            tables.add_port(int(match["ingress_port"]))
    for match, action, args in rows(intended, "ipv4_routes"):
        if action == "to_host":
            tables.add_host(IPv4Address(str(match["dst"]).removesuffix("/32")), int(args["port"]))
    for match, _, _ in rows(intended, "second_role"):
        tables.add_second(int(match["ingress_port"]), IPv4Network(match["src"]))
    for match, _, args in rows(intended, "path_lists"):
        if match["class"] == program.enum("PathClass_t", ALL):
            role = role_of[int(match["role"])]
            tables.add_list(role, int(match["near"]), int(args["list"]), int(args["size"]))
    for match, _, args in rows(intended, "path_slots"):
        tables.add_slot(int(match["list"]), int(match["slot"]), int(args["port"]))
    for match, _, args in rows(intended, "destinations"):
        tables.add_destination(IPv4Network(match["dst"]), int(args["near"]), int(args["port"]))
    return tables


def planned_walker(topology: Topology, intents: Mapping[str, SwitchIntent]) -> EvWalker:
    """Walks through what switches shall hold."""
    return EvWalker(topology, lambda name: planned_tables(intents[name]))
