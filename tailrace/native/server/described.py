# SPDX-License-Identifier: Apache-2.0
"""What a controller has written, in one line, for those who look at a packet's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from finsy import P4Schema, P4TableEntry
from finsy.proto import p4i, p4r

from tailrace.native.server.entities.entry import Entry as TableEntry
from tailrace.native.server.entities.tables import Table
from tailrace.native.server.state import State
from tailrace.native.trace.coverage import Entry
from tailrace.p4rt.programs import schema_of
from tailrace.words.text import one_line


def described(
    state: State, p4info: p4i.P4Info, kind: Literal["entry", "member", "group"], name: str, handle: int
) -> str:
    """An entry with its key, priority and action, a member or group by its id; "" where it is gone.

    Args:
        name: of the table or action profile, in the program.
        handle: the switch's number for it.
    """
    if kind == "entry":
        return _entry(state, p4info, name, handle)
    profile = next((p for p in state.profiles.values() if p.plan.name == name), None)
    if profile is None:
        return ""
    if kind == "group":
        found = next((number for number, group in profile.groups.items() if group.handle == handle), None)
    else:
        found = next((number for number, member in profile.members.items() if handle in member.handles), None)
    return "" if found is None else f"{kind} {found}"


def all_entries(state: State, p4info: p4i.P4Info, was_hit: Callable[[int, int], bool]) -> Iterator[Entry]:
    """All entries of all tables, and whether a packet has hit them."""
    schema = _schema(p4info)
    for table in state.tables.values():
        for entry in table.all():
            if entry is not None:
                said = _said(state, table, entry, schema)
                yield Entry(table.plan.name, said, was_hit(table.plan.index, entry.handle))


def _entry(state: State, p4info: p4i.P4Info, name: str, handle: int) -> str:
    table = next((t for t in state.tables.values() if t.plan.name == name), None)
    entry = None if table is None else table.by_handle.get(handle)
    if table is None or entry is None:
        return ""
    return _said(state, table, entry, _schema(p4info))


def _schema(p4info: p4i.P4Info) -> P4Schema | None:
    """None where finsy does not take what the switch has taken: two actions of one alias, for example."""
    try:
        return schema_of(p4info)
    except (LookupError, ValueError):
        return None


def _said(state: State, table: Table, entry: TableEntry, schema: P4Schema | None) -> str:
    message = p4r.Entity()
    state.reader.fill(table, entry, p4r.TableEntry(), message)
    if schema is None:
        return one_line(str(message.table_entry))
    read = P4TableEntry.decode(message, schema)
    priority = f" priority {read.priority}" if read.priority else ""
    return f"{read.match_str(schema)}{priority} {read.action_str(schema)}"
