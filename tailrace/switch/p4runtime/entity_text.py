# SPDX-License-Identifier: Apache-2.0
"""Entities of a pipeline as one line of text, for packet traces and coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal
from weakref import WeakKeyDictionary

from finsy.proto import p4i, p4r

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.state import ForwardingState
from tailrace.switch.trace.coverage import EntryCoverage

_names: WeakKeyDictionary[ForwardingState, ProgramNames] = WeakKeyDictionary()
"""Of each pipeline that was asked for."""


def entity_text(
    state: ForwardingState,
    p4info: p4i.P4Info,
    kind: Literal["entry", "member", "group"],
    name: str,
    handle: int,
) -> str:
    """An entry with its key, priority and action, a member or group by its id; "": it was deleted.

    Args:
        name: of the table or action profile, in the program.
        handle: the switch's number for it.
    """
    if kind == "entry":
        table = next((t for t in state.tables.values() if t.plan.name == name), None)
        entry = None if table is None else table.by_handle.get(handle)
        return "" if table is None or entry is None else _text(state, p4info, table, entry)
    profile = next((p for p in state.profiles.values() if p.plan.name == name), None)
    if profile is None:
        return ""
    if kind == "group":
        number = next((key for key, group in profile.groups.items() if group.handle == handle), None)
    else:
        number = next(
            (number for number, member in profile.members.items() if handle in member.handles), None
        )
    return "" if number is None else f"{kind} {number}"


def all_entries(
    state: ForwardingState, p4info: p4i.P4Info, was_hit: Callable[[int, int], bool]
) -> Iterator[EntryCoverage]:
    """All entries of all tables, and whether a packet has hit each."""
    for table in state.tables.values():
        for entry in table.all():
            if entry is not None:
                text = _text(state, p4info, table, entry)
                yield EntryCoverage(table.plan.name, text, was_hit(table.plan.index, entry.handle))


def _text(state: ForwardingState, p4info: p4i.P4Info, table: TableState, entry: StoredEntry) -> str:
    if state not in _names:
        _names[state] = ProgramNames(p4info)
    message = p4r.Entity()
    state.reader.fill(table, entry, p4r.TableEntry(), message)
    return _names[state].tables[table.plan.id].text(message.table_entry)
