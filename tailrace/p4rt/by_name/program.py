# SPDX-License-Identifier: Apache-2.0
"""Converts P4Runtime entities to names and values and back, using only the P4Info of a program.

`names` looks names up, `parse` encodes values. Decoded values have the types of `p4rt.values`; `parse`
accepts the text forms of these types. A `PeerOf` is a function that returns the name of the neighbour at a
port, or None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from msgspec import structs

from tailrace.p4rt.by_name import names, parse
from tailrace.p4rt.by_name.names import NameIndex
from tailrace.p4rt.fields import FieldKind, PeerOf, TypedField, data_field, enum_members, fields_of, original
from tailrace.p4rt.messages import p4i, p4r, p4t
from tailrace.p4rt.values import Value, text_of
from tailrace.spec import SpecError

WITH_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)
"""Match types; if a table's key has one of them, its entries have priorities (specification 9.1.1)."""

ENUM_FIELDS = {
    ("discard", "reason"): "DropReason_t",
    ("drops", "index"): "DropReason_t",
    ("policed", "index"): "Policed_t",
    ("limit_host", "reason"): "Policed_t",
    ("set_flowcut", "first_path"): "FirstPath_t",
    ("set_flowcut", "mode"): "FlowcutMode_t",
}
"""(action or counter, field) -> type of the field, an enum. p4c omits these types in P4Info. If a program
lacks the enum, numbers are shown.
"""

PORT_COUNTERS = frozenset(
    {
        *("warnings_sent", "warnings_withdrawn", "warnings_received"),
        *("pfc_sent", "pfc_pauses_sent", "pfc_received", "pfc_waits"),
    }
)
"""Counters that have a cell for each port, but not "port" in their name."""

_SPECIAL_PORTS = {
    "cpu_port": "CPU",
    "drop_port": "drop",
    "mirror_port": "mirror",
    "pause_port": "pause",
    "waiting_port": "waiting",
}
_SWITCH_ANNOTATION = "switch"


def _no_peer(_port: int) -> None:
    """A PeerOf for ports whose neighbours are unknown: returns None."""


class ActionNames:
    """An action and its parameters. `name`: the name to show; `parameters`: by id."""

    def __init__(self, info: p4i.Action, name: str, types: p4t.P4TypeInfo) -> None:
        self.info, self.name = info, name
        self.parameters = {
            number: _with_enum(types, name, field) for number, field in fields_of(info.params, types).items()
        }

    @cached_property
    def _names(self) -> NameIndex[p4i.Action.Param]:
        return names.members(f"parameter of action {self.info.preamble.name}", self.info.params)

    def encode(self, arguments: Mapping[str, Any] | Iterable[Any]) -> p4r.Action:
        """The action with arguments by name, or in the order of their declaration. Raises SpecError."""
        name, given = self.info.preamble.name, dict[int, Any]()
        if isinstance(arguments, Mapping):
            for key, value in arguments.items():
                number = self._names.id_of(key)
                if number in given:
                    raise SpecError(f"parameter {self._names.full(number)} is given twice")
                given[number] = value
        else:
            values = list(arguments)
            if len(values) > len(self.parameters):
                raise SpecError(f"action {name} takes {len(self.parameters)} values, found {len(values)}")
            given = dict(zip(self.parameters, values, strict=False))
        missing = [self._names.full(number) for number in self.parameters if number not in given]
        if missing:
            raise SpecError(f"action {name}: missing parameters: {', '.join(missing)}")
        action = p4r.Action(action_id=self.info.preamble.id)
        for number, value in given.items():
            action.params.add(param_id=number, value=parse.octets(self.parameters[number], value))
        return action

    def arguments(self, action: p4r.Action, peer_of: PeerOf = _no_peer) -> dict[str, Value]:
        """Typed arguments by name, in the order of the declaration."""
        given = {param.param_id: param.value for param in action.params}
        return {
            field.name: field.from_bytes(given[number], peer_of)
            for number, field in self.parameters.items()
            if number in given
        }


class TableNames:
    """A table: its key, actions and direct resources.

    name, full_name: the name to show, and the name in P4Info
    fields: the key's fields, by id
    has_counter, has_meter: whether the table has a direct counter, a direct meter
    const_default, is_const: whether the default action is const, and whether all entries are const
    profile_id: id of the table's action profile or action selector; 0: none
    with_priority: whether entries have priorities
    """

    def __init__(self, info: p4i.Table, name: str, program: ProgramNames) -> None:
        self.info, self.name, self.id = info, name, info.preamble.id
        self.full_name = info.preamble.name
        self._program = program
        self.fields = fields_of(info.match_fields, program.info.type_info)
        self.action_ids = tuple(ref.id for ref in info.action_refs)
        self.has_counter = any(counter.direct_table_id == self.id for counter in program.info.direct_counters)
        self.has_meter = any(meter.direct_table_id == self.id for meter in program.info.direct_meters)
        self.const_default, self.is_const = bool(info.const_default_action_id), info.is_const_table
        self.profile_id = info.implementation_id
        self.with_priority = any(field.match_type in WITH_PRIORITY for field in info.match_fields)

    @cached_property
    def key_names(self) -> NameIndex[p4i.MatchField]:
        """The match fields by name."""
        return names.members("match field", self.info.match_fields)

    @cached_property
    def _actions(self) -> NameIndex[p4i.Action]:
        actions = self._program.actions
        known = [actions[number].info for number in self.action_ids if number in actions]
        return names.entities(f"action of table {self.full_name}", known)

    def action(self, name: str) -> ActionNames:
        """An action of the table. Raises SpecError if the table has none of that name."""
        return self._program.actions[self._actions.id_of(name)]

    def encode_key(self, values: Mapping[str, Any]) -> list[p4r.FieldMatch]:
        """The key of an entry; don't-care fields can be omitted. Raises SpecError."""
        given = {}
        for name, value in values.items():
            number = self.key_names.id_of(name)
            if number in given:
                raise SpecError(f"match field {self.key_names.full(number)} is given twice")
            given[number] = parse.match(self.fields[number], self.key_names.by_id[number], value)
        for number, field in self.key_names.by_id.items():
            if number not in given and field.match_type == p4i.MatchField.EXACT:
                raise SpecError(f"match field {self.key_names.full(number)} is missing")
        return [match for match in given.values() if match is not None]

    def encode(
        self, key: Mapping[str, Any], action: p4r.Action, *, priority: int = 0, default: bool = False
    ) -> p4r.TableEntry:
        """An entry, or the default entry. Raises SpecError."""
        if self.with_priority and not default and priority <= 0:
            raise SpecError(f"table {self.full_name} needs a priority above 0 (the largest wins)")
        entry = p4r.TableEntry(table_id=self.id, priority=priority, is_default_action=default)
        entry.match.extend([] if default and not key else self.encode_key(key))
        if self.profile_id:
            # a one-shot with only this action, as entries of indirect tables cannot directly contain actions
            entry.action.action_profile_action_set.action_profile_actions.add(action=action, weight=1)
        else:
            entry.action.action.CopyFrom(action)
        return entry

    def key(self, match: Iterable[p4r.FieldMatch], peer_of: PeerOf = _no_peer) -> dict[str, Value]:
        """Typed key by field name, in the order of the declaration; None: don't care."""
        given = {field.field_id: field for field in match}
        return {
            field.name: field.from_match(given[number], peer_of) if number in given else None
            for number, field in self.fields.items()
        }

    def text(self, entry: p4r.TableEntry) -> str:
        """Key, priority and action of an entry in one line; field names are shortened if they stay unique."""
        given = {match.field_id: match for match in entry.match}
        parts = [
            f"{self.key_names.shown(number)}={text_of(field.from_match(given[number], _no_peer))}"
            for number, field in self.fields.items()
            if number in given
        ]
        if entry.priority:
            parts.append(f"priority {entry.priority}")
        return " ".join((*parts, self._program.action_text(entry.action, self.profile_id)))


class ProgramNames:
    """The objects of one P4Info message, by id and by name; values of unknown types are numbers."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.info = info
        self.table_names = names.entities("table", info.tables)
        self.action_names = names.entities("action", info.actions)
        self.actions = {
            number: ActionNames(action, self.action_names.shown(number), info.type_info)
            for number, action in self.action_names.by_id.items()
        }
        self.tables = {
            number: TableNames(table, self.table_names.shown(number), self)
            for number, table in self.table_names.by_id.items()
        }
        self.counters = names.entities("counter", info.counters)
        self.digests = names.entities("digest", info.digests)
        self.direct_counters = names.entities("direct counter", info.direct_counters)
        self.meters = names.entities("meter", info.meters)
        self.registers = names.entities("register", info.registers)
        self.profiles = names.entities("action profile", info.action_profiles)
        self.value_sets = names.entities("value set", info.value_sets)
        self.constants = {
            pair.key: pair.value.int64_value
            for annotation in info.pkg_info.structured_annotations
            if annotation.name == _SWITCH_ANNOTATION
            for pair in annotation.kv_pair_list.kv_pairs
        }
        """Constants in the program's annotation @switch[cpu_port=...]."""
        self.special_ports = {
            number: _SPECIAL_PORTS[key] for key, number in self.constants.items() if key in _SPECIAL_PORTS
        }
        """Ports without interfaces."""

    @property
    def name(self) -> str:
        """The program's name; empty: P4Info has none."""
        return self.info.pkg_info.name

    def shown(self, kind: str) -> list[str]:
        """The names to show of all tables, counters or registers."""
        return [index.shown(number) for index in self._of_kind(kind) for number in index.by_id]

    def named(self, kind: str, name: str) -> list[str]:
        """The names to show of all tables, counters or registers that match a name."""
        return [index.shown(number) for index in self._of_kind(kind) for number in index.meanings(name)]

    def _of_kind(self, kind: str) -> Sequence[NameIndex[Any]]:
        of_kind: dict[str, Sequence[NameIndex[Any]]] = {
            "table": (self.table_names,),
            "register": (self.registers,),
            "counter": (self.counters, self.direct_counters),
        }
        return of_kind[kind]

    def table(self, name: str) -> TableNames:
        """The table with a name. Raises SpecError if no table or several tables match."""
        return self.tables[self.table_names.id_of(name)]

    def has_table(self, name: str) -> bool:
        """Whether exactly one table matches a name."""
        return len(self.table_names.meanings(name)) == 1

    def enum(self, name: str) -> Mapping[int, str]:
        """Names of an enum's values; empty: no such enum."""
        return enum_members(self.info.type_info, name)

    def enum_value(self, name: str, member: str) -> int | None:
        return next((number for number, text in self.enum(name).items() if text == member), None)

    def register_size(self, name: str) -> int:
        """The number of cells of a register; 0: no such register."""
        return next((register.size for register in self.info.registers if register.preamble.alias == name), 0)

    def register_number(self, cell: p4r.RegisterEntry) -> int:
        """The number in a register's cell.

        Raises:
            SpecError: P4Info has no such register, or its cells have a translated type or are not numbers.
        """
        register, types = self.registers.item(cell.register_id), self.info.type_info
        name, spec = register.preamble.name, original(register.type_spec, types)
        if spec.HasField("new_type"):
            raise SpecError(f"register {name}: values that are translated")
        if cell.data.WhichOneof("data") != "bitstring":
            raise SpecError(f"register {name}: cells that are not numbers")
        return int.from_bytes(cell.data.bitstring, "big", signed=data_field(name, spec, types).signed)

    def index_field(self, owner: str) -> TypedField:
        """The index field of a counter, register or meter.

        The index is a port if the owner's name contains the word "port", or is in PORT_COUNTERS; else a
        number. Only the part of the name after the last dot counts.
        """
        owner = owner.rpartition(".")[2]
        by_port = owner in PORT_COUNTERS or "port" in owner.lower().split("_")
        kind = FieldKind.PORT if by_port else FieldKind.NUMBER
        return _with_enum(self.info.type_info, owner, TypedField("index", 32, kind, {}))

    # ---- entities as text ----

    def action_text(self, action: p4r.TableAction, profile_id: int = 0) -> str:
        """An entry's action: `forward(port=1)`, `2*forward(port=1) 1*drop()`, or `group 5 of ecmp`."""
        which = action.WhichOneof("type")
        if which == "action":
            return self._call_text(action.action)
        if which == "action_profile_action_set":
            choices = action.action_profile_action_set.action_profile_actions
            return " ".join(f"{choice.weight}*{self._call_text(choice.action)}" for choice in choices)
        if which is None:
            return "NoAction()"
        profile = self.profiles.shown(profile_id)
        if which == "action_profile_member_id":
            return f"member {action.action_profile_member_id} of {profile}"
        return f"group {action.action_profile_group_id} of {profile}"

    def _call_text(self, call: p4r.Action) -> str:
        action = self.actions[call.action_id]
        arguments = (f"{name}={text_of(value)}" for name, value in action.arguments(call).items())
        return f"{action.name}({', '.join(arguments)})"

    def described(self, entity: p4r.Entity) -> str:
        """A text that identifies an entity by its kind, and its key or id."""
        which = entity.WhichOneof("entity")
        if which == "table_entry":
            entry = entity.table_entry
            table = self.tables.get(entry.table_id)
            if table is None:
                return f"an entry of table {entry.table_id:#x}"
            key = text_of(table.key(entry.match), "without a key")
            return f"{'the default action' if entry.is_default_action else key} of table {table.name}"
        if which == "packet_replication_engine_entry":
            replication = entity.packet_replication_engine_entry
            if replication.HasField("clone_session_entry"):
                return f"clone session {replication.clone_session_entry.session_id}"
            return f"multicast group {replication.multicast_group_entry.multicast_group_id}"
        return f"the {str(which or 'update').replace('_', ' ')}"

    def update_text(self, update: p4r.Update) -> str:
        """An update of a Write: its type, what `described` says, and the action of an entry."""
        text, entry = self.described(update.entity), update.entity.table_entry
        if entry.HasField("action"):
            with suppress(KeyError):  # an unknown table or action, which the switch has refused
                text += f" -> {self.action_text(entry.action, self.tables[entry.table_id].profile_id)}"
        return f"{p4r.Update.Type.Name(update.type).lower()} {text}"


def _with_enum(types: p4t.P4TypeInfo, owner: str, field: TypedField) -> TypedField:
    members = enum_members(types, ENUM_FIELDS.get((owner, field.name), ""))
    return structs.replace(field, kind=FieldKind.ENUM, members=members) if members else field
