# SPDX-License-Identifier: Apache-2.0
"""Differences between the entities of a switch and its intent (those that it should have), as rows."""

from __future__ import annotations

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.tables import row_of
from tailrace.controller.reconcile import differences
from tailrace.p4rt import programs
from tailrace.p4rt.canonical import replica_port
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.diff import EntityChange
from tailrace.p4rt.endpoint import run_at_once  # the client's coroutines block in gRPC and never suspend
from tailrace.p4rt.errors import UnsupportedError
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.values import SwitchPort, Value, text_of
from tailrace.tables.listing import Column, Listing, Row, in_order

# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
COLUMNS = (
    Column("switch", key=True),
    Column("difference", key=True),
    Column("where", key=True),
    Column("match", key=True),
    Column("priority", key=True, rank=1),
    Column("intended"),
    Column("actual"),
)
MISSING, UNEXPECTED, CHANGED, PROGRAM = "missing", "unexpected", "changed", "program"
"""Values of the column `difference`."""


def read_differences(node: InspectedSwitch, intent: SwitchIntent) -> Listing:
    """One row per difference; empty if all is as intended.

    Args:
        node: the switch, reached by gRPC.
        intent: the entities that the switch should have.

    Raises:
        ControllerError: the switch cannot be read, or the intended program is missing.
    """
    if intent.updates is not None:
        raise UnsupportedError(node.name, "diff compares the entries of schemes, not those of a user's files")
    connection, program = node.connection, programs.load(intent.program)
    assert isinstance(connection, GrpcConnection), "entities are compared over gRPC"
    cookie = run_at_once(connection.client.cookie())
    if cookie != program.cookie:
        rows = [_program_row(node.name, program, cookie)]
    else:
        changes = run_at_once(differences(connection.client, program, intent.entities))
        rows = [_row(node, change) for change in changes]
    # the match fields, by which filters may select rows
    names = frozenset(key for row in rows if isinstance(row["match"], dict) for key in row["match"])
    return Listing("diff", COLUMNS, in_order(COLUMNS, rows), names)


def _program_row(name: str, program: P4Program, cookie: int | None) -> Row:
    return {
        "switch": name,
        "difference": PROGRAM,
        "where": "pipeline",
        "match": None,
        "priority": None,
        "intended": f"{program.name} (cookie {program.cookie:#x})",
        "actual": "no program" if cookie is None else f"another program or build (cookie {cookie:#x})",
    }


def _row(node: InspectedSwitch, change: EntityChange) -> Row:
    entity = change.after if change.after is not None else change.before
    assert entity is not None, "a change has at least one side"
    where, match, priority = _identity(node, entity)
    kind = MISSING if change.before is None else UNEXPECTED if change.after is None else CHANGED
    return {
        "switch": node.name,
        "difference": kind,
        "where": where,
        "match": match,
        "priority": priority,
        "intended": _content(node, change.after),
        "actual": _content(node, change.before),
    }


def _identity(node: InspectedSwitch, entity: p4r.Entity) -> tuple[str, Value, Value]:
    """The columns `where` (table, or kind of other entity), `match` (or the id) and `priority`."""
    if entity.WhichOneof("entity") == "table_entry":
        entry = entity.table_entry
        table = node.program.tables[entry.table_id]
        row = row_of(node, table, entry)
        return table.name, {"default": True} if entry.is_default_action else row["match"], row["priority"]
    if entity.WhichOneof("entity") == "digest_entry":
        return "digest", {"group": _digest_name(node, entity.digest_entry)}, None
    replication = entity.packet_replication_engine_entry
    if replication.WhichOneof("type") == "clone_session_entry":
        return "clone session", {"group": replication.clone_session_entry.session_id}, None
    return "multicast group", {"group": replication.multicast_group_entry.multicast_group_id}, None


def _digest_name(node: InspectedSwitch, entry: p4r.DigestEntry) -> str:
    known = {digest.preamble.id: digest.preamble.alias for digest in node.program.info.digests}
    return known.get(entry.digest_id, str(entry.digest_id))


def _content(node: InspectedSwitch, entity: p4r.Entity | None) -> str | None:
    """What an entity does, as a string."""
    if entity is None:
        return None
    if entity.WhichOneof("entity") == "table_entry":
        row = row_of(node, node.program.tables[entity.table_entry.table_id], entity.table_entry)
        return f"{text_of(row['action'])} {text_of(row['params'], '')}".strip()
    if entity.WhichOneof("entity") == "digest_entry":
        config = entity.digest_entry.config
        return (
            f"max_timeout_ns={config.max_timeout_ns} max_list_size={config.max_list_size}"
            f" ack_timeout_ns={config.ack_timeout_ns}"
        )
    replication = entity.packet_replication_engine_entry
    clone = replication.WhichOneof("type") == "clone_session_entry"
    entry = replication.clone_session_entry if clone else replication.multicast_group_entry
    ports = sorted(replica_port(replica) for replica in entry.replicas)
    return f"ports {text_of(tuple(SwitchPort(number, node.peer_of(number)) for number in ports))}"
