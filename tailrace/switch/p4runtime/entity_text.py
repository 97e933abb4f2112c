# SPDX-License-Identifier: Apache-2.0
"""Entities of a pipeline as one line of text, for packet traces and coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal
from weakref import WeakKeyDictionary

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.messages import p4i, p4r
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.state import ForwardingState
from tailrace.switch.trace.coverage import EntryCoverage

_names: WeakKeyDictionary[ForwardingState, ProgramNames] = WeakKeyDictionary()
"""A cache: the names in each pipeline's P4Info, made at the first request for text."""


def entity_text(
    state: ForwardingState,
    p4info: p4i.P4Info,
    kind: Literal["entry", "member", "group"],
    name: str,
    handle: int,
) -> str:
    """An entry as text with key, priority and action; a member or group with its id; "": it was deleted.

    Args:
        name: the name of the table or action profile in the program.
        handle: the switch core's handle of the entity.
    """
    if kind == "entry":
        table = next((t for t in state.tables.values() if t.plan.name == name), None)
        entry = None if table is None else table.by_handle.get(handle)
        return "" if table is None or entry is None else _text(state, p4info, table, entry)
    profile = next((p for p in state.profiles.values() if p.plan.name == name), None)
    if profile is None:
        return ""
    entity_id = profile.group_id(handle) if kind == "group" else profile.member_id(handle)
    return "" if entity_id is None else f"{kind} {entity_id}"


def all_entries(
    state: ForwardingState, p4info: p4i.P4Info, was_hit: Callable[[int, int], bool]
) -> Iterator[EntryCoverage]:
    """All entries of all tables, and whether a packet has hit each.

    Args:
        was_hit: takes a table's index and an entry's handle; returns whether a packet has hit the entry.
    """
    for table in state.tables.values():
        for entry in table.all():
            if entry is not None:
                text = _text(state, p4info, table, entry)
                yield EntryCoverage(table.plan.name, text, was_hit(table.plan.index, entry.handle))


def _text(state: ForwardingState, p4info: p4i.P4Info, table: TableState, entry: StoredEntry) -> str:
    if state not in _names:
        _names[state] = ProgramNames(p4info)
    message = p4r.Entity()
    table.fill(entry, p4r.TableEntry(), message)
    return _names[state].tables[table.plan.id].text(message.table_entry)
