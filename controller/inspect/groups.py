# SPDX-License-Identifier: Apache-2.0
"""Groups of ports or next hops, of five kinds.

ecmp       groups of a table keyed by group and slot, whose action names a port (`group_members` of our
           programs), or keyed by group, whose action names all ports (`candidates`); with the prefixes that
           use the group
selector   groups of an action selector
member     single members of an action profile
multicast  multicast groups
clone      clone sessions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.tables import action_and_params, read_entries, row_of, weighted_call
from tailrace.p4rt.by_name.program import TableNames
from tailrace.p4rt.canonical import replica_port
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.values import SwitchPort, Value, number_of, sort_key
from tailrace.tables.listing import Column, Listing, Row, in_order

# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
COLUMNS = (
    Column("switch", key=True),
    Column("kind", key=True),
    Column("name", key=True),
    Column("group", key=True),
    Column("size", rank=2),
    Column("ports"),
    Column("members", rank=3),
    Column("used_by", rank=1),
)
GROUP_KEY = "group"
"""Name of the key field of tables of groups, and of the action parameter by which a route names its group."""


def read_groups(node: InspectedSwitch) -> Listing:
    """Groups of a switch. Raises SwitchError when it cannot be read."""
    rows = [*_ecmp(node), *_selectors(node), *_replication(node)]
    return Listing("groups", COLUMNS, in_order(COLUMNS, rows), frozenset({"weight", "instance", "action"}))


def group_tables(node: InspectedSwitch) -> list[TableNames]:
    """Tables keyed by a group."""
    return [
        table
        for table in node.program.tables.values()
        if GROUP_KEY in {field.name for field in table.fields.values()}
    ]


def entry_ports(params: dict[str, Value]) -> list[SwitchPort]:
    """The ports among an action's arguments, without port 0, which fills unused arguments."""
    return [value for value in params.values() if isinstance(value, SwitchPort) and value.number]


def ecmp_groups(node: InspectedSwitch, table: TableNames) -> dict[int, list[SwitchPort]]:
    """Ports of each group in a table of groups, in the order of the slots."""
    slots: dict[int, list[tuple[Any, list[SwitchPort]]]] = {}
    for entry in read_entries(node, table):
        row = row_of(node, table, entry)
        match, params = row["match"], row["params"]
        if isinstance(match, dict) and isinstance(params, dict):
            slots.setdefault(number_of(match[GROUP_KEY]), []).append(
                (sort_key(dict(match)), entry_ports(params))
            )
    return {
        group: [port for _, ports in sorted(slot_ports, key=lambda item: item[0]) for port in ports]
        for group, slot_ports in slots.items()
    }


def _ecmp(node: InspectedSwitch) -> Iterator[Row]:
    tables = group_tables(node)
    if not tables:
        return
    users = _users(node, {table.name for table in tables})
    for table in tables:
        for group, ports in ecmp_groups(node, table).items():
            yield _row(node, "ecmp", table.name, group, ports=ports, used_by=users.get(group, ()))


def _users(node: InspectedSwitch, groups: set[str]) -> dict[int, tuple[Value, ...]]:
    """Keys of the entries that send packets to each group."""
    users: dict[int, list[Value]] = {}
    for table in node.program.tables.values():
        uses = any(
            GROUP_KEY in {field.name for field in node.program.actions[action].parameters.values()}
            for action in table.action_ids
        )
        if table.name in groups or not uses:
            continue
        for entry in read_entries(node, table):
            row = row_of(node, table, entry)
            match, params = row["match"], row["params"]
            if isinstance(match, dict) and isinstance(params, dict) and GROUP_KEY in params:
                users.setdefault(number_of(params[GROUP_KEY]), []).extend(match.values())
    return {group: tuple(sorted(keys, key=sort_key)) for group, keys in users.items()}


def _selectors(node: InspectedSwitch) -> Iterator[Row]:
    for profile in node.program.info.action_profiles:
        pattern = p4r.ActionProfileMember(action_profile_id=profile.preamble.id)
        entities = node.connection.read([p4r.Entity(action_profile_member=pattern)])
        members = {
            entity.action_profile_member.member_id: action_and_params(
                node, entity.action_profile_member.action
            )
            for entity in entities
        }
        name = node.program.profiles.shown(profile.preamble.id)
        for member_id, (action, params) in members.items():
            calls: tuple[Value, ...] = ({"action": action, **params},)
            yield _row(node, "member", name, member_id, ports=entry_ports(params), members=calls)
        if profile.with_selector:
            yield from _selector_groups(node, profile.preamble.id, name, members)


def _selector_groups(
    node: InspectedSwitch, profile_id: int, name: str, members: dict[int, tuple[str, dict[str, Value]]]
) -> Iterator[Row]:
    pattern = p4r.ActionProfileGroup(action_profile_id=profile_id)
    for entity in node.connection.read([p4r.Entity(action_profile_group=pattern)]):
        group = entity.action_profile_group
        ports, calls = [], []
        for member in sorted(group.members, key=lambda member: member.member_id):
            call = members.get(member.member_id, ("unknown", {}))
            calls.append({"member": member.member_id, **weighted_call(call, member.weight)})
            ports += entry_ports(call[1])
        yield _row(node, "selector", name, group.group_id, ports=ports, members=tuple(calls))


def _replication(node: InspectedSwitch) -> Iterator[Row]:
    """Multicast groups and clone sessions."""
    pattern = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    for entity in node.read_if_offered(p4r.Entity(packet_replication_engine_entry=pattern)):
        group = entity.packet_replication_engine_entry.multicast_group_entry
        yield _replication_row(node, "multicast", group.multicast_group_id, group.replicas)
    pattern = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    for entity in node.read_if_offered(p4r.Entity(packet_replication_engine_entry=pattern)):
        session = entity.packet_replication_engine_entry.clone_session_entry
        yield _replication_row(node, "clone", session.session_id, session.replicas)


def _replication_row(node: InspectedSwitch, kind: str, group: int, replicas: Iterable[p4r.Replica]) -> Row:
    """A row with the ports in order, and the instances of replicas that have an instance."""
    instances = sorted((replica_port(replica), replica.instance) for replica in replicas)
    ports = [SwitchPort(number, node.peer_of(number)) for number, _ in instances]
    members: list[Value] = [
        {"port": port, "instance": instance}
        for port, (_, instance) in zip(ports, instances, strict=True)
        if instance
    ]
    return _row(node, kind, None, group, ports=ports, members=tuple(members))


def _row(
    node: InspectedSwitch,
    kind: str,
    name: str | None,
    group: int,
    *,
    ports: list[SwitchPort],
    members: tuple[Value, ...] = (),
    used_by: tuple[Value, ...] = (),
) -> Row:
    return {
        "switch": node.name,
        "kind": kind,
        "name": name,
        "group": group,
        "size": max(len(ports), len(members)),
        "ports": tuple(ports),
        "members": members,
        "used_by": used_by,
    }
