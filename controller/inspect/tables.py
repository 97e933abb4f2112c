# SPDX-License-Identifier: Apache-2.0
"""Table entries, default entries included, by name and with typed values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt.by_name.program import TableNames
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.values import Value
from tailrace.tables.listing import Column, Listing, Row, in_order

# key: rows are sorted by these columns, which identify a row; rank: columns of the highest rank are hidden
# first if the terminal is too narrow
COLUMNS = (
    Column("switch", key=True),
    Column("table", key=True),
    Column("entry", key=True),
    Column("priority", key=True, rank=1),
    Column("match", key=True),
    Column("action"),
    Column("params"),
    Column("packets", grows=True, rank=2),
    Column("bytes", grows=True, rank=3),
)
ENTRY, CONST, DEFAULT = "entry", "const", "default"
"""Values of the column `entry`: written by a controller, fixed by the program, the default entry."""


def read_tables(node: InspectedSwitch, only: frozenset[str] = frozenset()) -> Listing:
    """Entries of a switch.

    Args:
        node: the switch.
        only: names of tables; empty: all.

    Raises:
        SwitchError: the switch cannot be read.
    """
    tables = [table for table in node.program.tables.values() if not only or table.name in only]
    rows = [row for table in tables for row in _rows(node, table)]
    return Listing("tables", COLUMNS, in_order(COLUMNS, rows), _names(node, tables))


def read_entries(node: InspectedSwitch, table: TableNames) -> list[p4r.TableEntry]:
    """The entries of a table as P4Runtime messages, with its default entry if the switch reports it."""
    pattern = p4r.TableEntry(table_id=table.id)
    if table.has_counter:
        pattern.counter_data.SetInParent()
    if table.has_meter:
        pattern.meter_config.SetInParent()
    entities = node.connection.read([p4r.Entity(table_entry=pattern)])
    if table.profile_id == 0:
        default = p4r.TableEntry(table_id=table.id, is_default_action=True)
        entities += node.read_if_offered(p4r.Entity(table_entry=default))
    return [entity.table_entry for entity in entities]


def _rows(node: InspectedSwitch, table: TableNames) -> Iterator[Row]:
    for entry in read_entries(node, table):
        yield row_of(node, table, entry)


def row_of(node: InspectedSwitch, table: TableNames, entry: p4r.TableEntry) -> Row:
    """A row of the listing from an entry."""
    action, params = action_of(node, entry.action)
    if entry.HasField("meter_config"):
        params = params | _rates(entry.meter_config)
    return {
        "switch": node.name,
        "table": table.name,
        "entry": _kind(table, entry),
        "priority": entry.priority or None,
        "match": None if entry.is_default_action else table.key(tuple(entry.match), node.peer_of),
        "action": action,
        "params": params,
        "packets": entry.counter_data.packet_count if entry.HasField("counter_data") else None,
        "bytes": entry.counter_data.byte_count if entry.HasField("counter_data") else None,
    }


def _rates(config: p4r.MeterConfig) -> dict[str, Value]:
    """The rates of an entry's meter in units per second, and bursts in units; peaks only if different."""
    rates: dict[str, Value] = {"cir": config.cir, "cburst": config.cburst}
    if (config.pir, config.pburst) != (config.cir, config.cburst):
        rates |= {"pir": config.pir, "pburst": config.pburst}
    return rates


def _kind(table: TableNames, entry: p4r.TableEntry) -> str:
    if entry.is_default_action:
        return DEFAULT
    return CONST if entry.is_const or table.is_const else ENTRY


def action_of(node: InspectedSwitch, action: p4r.TableAction) -> tuple[str | None, dict[str, Value]]:
    """Name and arguments of an entry's action; members and groups of a profile count as arguments."""
    which = action.WhichOneof("type")
    if which == "action":
        return action_and_params(node, action.action)
    if which == "action_profile_member_id":
        return "member", {"member": action.action_profile_member_id}
    if which == "action_profile_group_id":
        return "group", {"group": action.action_profile_group_id}
    if which == "action_profile_action_set":
        choices = [
            (action_and_params(node, choice.action), choice.weight)
            for choice in action.action_profile_action_set.action_profile_actions
        ]
        return "one of", {"choices": tuple(weighted_call(call, weight) for call, weight in choices)}
    return None, {}


def action_and_params(node: InspectedSwitch, action: p4r.Action) -> tuple[str, dict[str, Value]]:
    """Name and arguments of an action."""
    view = node.program.actions.get(action.action_id)
    if view is None:
        return f"{action.action_id:#x}", {}
    return view.name, view.arguments(action, node.peer_of)


def weighted_call(call: tuple[str, dict[str, Value]], weight: int) -> dict[str, Value]:
    """A weighted choice of a one-shot selector."""
    return {"action": call[0], **call[1], "weight": weight}


def _names(node: InspectedSwitch, tables: Iterable[TableNames]) -> frozenset[str]:
    """Names that filters may use beside the columns' names: key fields and action parameters."""
    names = set()
    for table in tables:
        names |= {field.name for field in table.fields.values()}
        for action_id in table.action_ids:
            action = node.program.actions.get(action_id)
            names |= set() if action is None else {field.name for field in action.parameters.values()}
        if table.profile_id:
            names |= {"member", "group", "choices"}
        if table.has_meter:
            names |= {"cir", "cburst", "pir", "pburst"}
    return frozenset(names)
