# SPDX-License-Identifier: Apache-2.0
"""Entries by name and value -> P4Runtime messages, with the P4Info of a program alone.

All names of P4Info can be used (`names`), and values in the usual notations (`parse`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from finsy.proto import p4i, p4r

from tailrace.p4rt.by_name import names, parse
from tailrace.p4rt.by_name.names import NameIndex
from tailrace.p4rt.fields import TypedField, fields_of
from tailrace.spec import SpecError

WITH_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)
"""Match types of which one in a table's key makes its entries have priorities (specification 9.1.1)."""


class TableNames:
    """A table with the names of its key and of its actions."""

    def __init__(self, info: p4i.Table, actions: NameIndex[p4i.Action], p4info: p4i.P4Info) -> None:
        self.info, self.name = info, info.preamble.name
        self.key = names.members("match field", info.match_fields)
        self.fields = fields_of(info.match_fields, p4info.type_info)
        refs = [actions.by_id[ref.id] for ref in info.action_refs if ref.id in actions.by_id]
        self.actions = names.entities(f"action of table {self.name}", refs)
        self.with_priority = any(field.match_type in WITH_PRIORITY for field in info.match_fields)


class Entries:
    """Encodes one program's entries. Methods raise SpecError for unknown names and values that do not fit."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self.p4info = p4info
        self.tables = names.entities("table", p4info.tables)
        self.profiles = names.entities("action profile", p4info.action_profiles)
        self._actions = names.entities("action", p4info.actions)
        self._tables: dict[int, TableNames] = {}
        self._params: dict[int, tuple[NameIndex[p4i.Action.Param], dict[int, TypedField]]] = {}

    def table(self, name: str) -> TableNames:
        """The table with a name."""
        number = self.tables.id_of(name)
        if number not in self._tables:
            self._tables[number] = TableNames(self.tables.by_id[number], self._actions, self.p4info)
        return self._tables[number]

    def key(self, table: TableNames, values: Mapping[str, Any]) -> list[p4r.FieldMatch]:
        """The key of an entry; don't-care fields can be omitted."""
        given = {}
        for name, value in values.items():
            number = table.key.id_of(name)
            if number in given:
                raise SpecError(f"match field {table.key.full(number)} is given twice")
            given[number] = parse.match(table.fields[number], table.key.by_id[number], value)
        for number, field in table.key.by_id.items():
            if number not in given and field.match_type == p4i.MatchField.EXACT:
                raise SpecError(f"match field {table.key.full(number)} is missing")
        return [match for match in given.values() if match is not None]

    def call(
        self, actions: NameIndex[p4i.Action], name: str, arguments: Mapping[str, Any] | Iterable[Any]
    ) -> p4r.Action:
        """An action with its arguments, by name or in the order of their declaration."""
        action = actions.named(name)
        params, fields = self._fields(action)
        given: dict[int, Any] = {}
        if isinstance(arguments, Mapping):
            for key, value in arguments.items():
                number = params.id_of(key)
                if number in given:
                    raise SpecError(f"parameter {params.full(number)} is given twice")
                given[number] = value
        else:
            values = list(arguments)
            if len(values) > len(fields):
                raise SpecError(
                    f"action {action.preamble.name} takes {len(fields)} values, found {len(values)}"
                )
            given = dict(zip(fields, values, strict=False))
        missing = [params.full(number) for number in fields if number not in given]
        if missing:
            raise SpecError(f"action {action.preamble.name}: missing parameters: {', '.join(missing)}")
        call = p4r.Action(action_id=action.preamble.id)
        for number, value in given.items():
            call.params.add(param_id=number, value=parse.octets(fields[number], value))
        return call

    def _fields(self, action: p4i.Action) -> tuple[NameIndex[p4i.Action.Param], dict[int, TypedField]]:
        known = self._params.get(action.preamble.id)
        if known is None:
            what = f"parameter of action {action.preamble.name}"
            known = names.members(what, action.params), fields_of(action.params, self.p4info.type_info)
            self._params[action.preamble.id] = known
        return known

    def entry(
        self,
        table: TableNames,
        key: Mapping[str, Any],
        call: p4r.Action,
        *,
        priority: int = 0,
        default: bool = False,
    ) -> p4r.TableEntry:
        """An entry, or the default entry of a table."""
        if table.with_priority and not default and priority <= 0:
            raise SpecError(f"table {table.name} needs a priority above 0 (the largest wins)")
        entry = p4r.TableEntry(table_id=table.info.preamble.id, priority=priority, is_default_action=default)
        entry.match.extend([] if default and not key else self.key(table, key))
        if table.info.implementation_id:
            # a one-shot with this action alone, as indirect tables take no actions
            entry.action.action_profile_action_set.action_profile_actions.add(action=call, weight=1)
        else:
            entry.action.action.CopyFrom(call)
        return entry
