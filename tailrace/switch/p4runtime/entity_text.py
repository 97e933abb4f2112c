# SPDX-License-Identifier: Apache-2.0
"""Entities that controllers have written as one line of text, for packet traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from finsy.proto import p4i, p4r, p4t

from tailrace.p4rt.by_name import names
from tailrace.p4rt.fields import FieldKind, TypedField, fields_of
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.state import ForwardingState
from tailrace.switch.trace.coverage import EntryCoverage


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
        return _entry(state, p4info, name, handle)
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
    texts = _Texts(p4info)
    for table in state.tables.values():
        for entry in table.all():
            if entry is not None:
                text = texts.entry(_message(state, table, entry))
                yield EntryCoverage(table.plan.name, text, was_hit(table.plan.index, entry.handle))


def _entry(state: ForwardingState, p4info: p4i.P4Info, name: str, handle: int) -> str:
    table = next((t for t in state.tables.values() if t.plan.name == name), None)
    entry = None if table is None else table.by_handle.get(handle)
    if table is None or entry is None:
        return ""
    return _Texts(p4info).entry(_message(state, table, entry))


def _message(state: ForwardingState, table: TableState, entry: StoredEntry) -> p4r.TableEntry:
    message = p4r.Entity()
    state.reader.fill(table, entry, p4r.TableEntry(), message)
    return message.table_entry


class _Texts:
    """Formats entries with the names and types of one P4Info."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self._types = p4info.type_info
        self._tables = {table.preamble.id: table for table in p4info.tables}
        self._actions = names.entities("action", p4info.actions)
        self._profiles = names.entities("action profile", p4info.action_profiles)
        self._keys: dict[int, dict[int, tuple[str, TypedField]]] = {}
        self._params: dict[int, Mapping[int, TypedField]] = {}

    def entry(self, entry: p4r.TableEntry) -> str:
        """Key, priority and action; numbers in base 16."""
        table = self._tables[entry.table_id]
        given = {match.field_id: match for match in entry.match}
        key = [
            f"{name}={_match(field, given[number])}"
            for number, (name, field) in self._key(table).items()
            if number in given
        ]
        priority = f" priority {entry.priority}" if entry.priority else ""
        return f"{' '.join(key)}{priority} {self._does(table, entry.action)}"

    def _key(self, table: p4i.Table) -> dict[int, tuple[str, TypedField]]:
        keys = self._keys.get(table.preamble.id)
        if keys is None:
            known = names.members("match field", table.match_fields)
            fields = _shown_as(table.match_fields, self._types)
            keys = {number: (known.shown(number), field) for number, field in fields.items()}
            self._keys[table.preamble.id] = keys
        return keys

    def _does(self, table: p4i.Table, action: p4r.TableAction) -> str:
        which = action.WhichOneof("type")
        if which == "action":
            return self._call(action.action)
        if which == "action_profile_action_set":
            choices = action.action_profile_action_set.action_profile_actions
            return " ".join(f"{choice.weight}*{self._call(choice.action)}" for choice in choices)
        if which is None:
            return "NoAction()"
        profile = self._profiles.shown(table.implementation_id)
        if which == "action_profile_member_id":
            return f"@{profile}[[{action.action_profile_member_id:#x}]]"
        return f"@{profile}[{action.action_profile_group_id:#x}]"

    def _call(self, call: p4r.Action) -> str:
        action = self._actions.by_id[call.action_id]
        if call.action_id not in self._params:
            self._params[call.action_id] = _shown_as(action.params, self._types)
        fields = self._params[call.action_id]
        arguments = (f"{fields[p.param_id].name}={_value(fields[p.param_id], p.value)}" for p in call.params)
        return f"{self._actions.shown(call.action_id)}({', '.join(arguments)})"


_ADDRESSES = (FieldKind.IPV4, FieldKind.IPV6, FieldKind.MAC)


def _shown_as(
    members: Iterable[p4i.MatchField | p4i.Action.Param], types: p4t.P4TypeInfo
) -> dict[int, TypedField]:
    """Fields by id; addresses are those with @format in P4Info, whatever the names."""
    fields = fields_of(members, types)
    for member in members:
        field, formatted = fields[member.id], any(text.startswith("@format") for text in member.annotations)
        if field.kind in _ADDRESSES and not formatted:
            fields[member.id] = replace(field, kind=FieldKind.NUMBER)
    return fields


def _value(field: TypedField, data: bytes) -> str:
    if field.kind is FieldKind.TEXT or field.kind in _ADDRESSES:
        return str(field.from_bytes(data, lambda _: None))
    return hex(int.from_bytes(data, "big"))


def _match(field: TypedField, match: p4r.FieldMatch) -> str:
    which = match.WhichOneof("field_match_type")
    if which == "lpm":
        length = match.lpm.prefix_len
        return _value(field, match.lpm.value) + (f"/{length}" if length != field.width else "")
    if which == "ternary":
        mask = int.from_bytes(match.ternary.mask, "big")
        inverse = ~mask & (1 << field.width) - 1
        value = _value(field, match.ternary.value)
        if inverse & (inverse + 1):
            return f"{value}/&{mask:#x}"
        return value + (f"/{mask.bit_count()}" if inverse else "")
    if which == "range":
        return f"{_value(field, match.range.low)}...{_value(field, match.range.high)}"
    return _value(field, match.exact.value if which == "exact" else match.optional.value)
