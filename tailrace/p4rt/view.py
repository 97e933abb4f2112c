# SPDX-License-Identifier: Apache-2.0
"""A program's P4Info, indexed for decoding: names, fields and actions by id."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finsy.proto import p4i, p4r

from tailrace.p4rt.by_name.names import NameIndex, entities
from tailrace.p4rt.fields import FieldKind, PeerOf, TypedField, enum_members, fields_of
from tailrace.p4rt.values import Value
from tailrace.spec import SpecError

ENUM_FIELDS = {
    ("discard", "reason"): "DropReason_t",
    ("drops", "index"): "DropReason_t",
    ("policed", "index"): "Policed_t",
    ("limit_host", "reason"): "Policed_t",
    ("set_flowcut", "first_path"): "FirstPath_t",
    ("set_flowcut", "mode"): "FlowcutMode_t",
}
"""(action or counter, field) -> enum; p4c omits these in P4Info. A program without the enum shows numbers."""

PORT_COUNTERS = frozenset(
    {
        *("warnings_sent", "warnings_withdrawn", "warnings_received"),
        *("pfc_sent", "pfc_pauses_sent", "pfc_received", "pfc_waits"),
    }
)
"""Counters with a cell for each port, without "port" in the name."""

_SPECIAL_PORTS = {
    "cpu_port": "CPU",
    "drop_port": "drop",
    "mirror_port": "mirror",
    "pause_port": "pause",
    "waiting_port": "waiting",
}
_SWITCH_ANNOTATION = "switch"


@dataclass(frozen=True, slots=True)
class ActionView:
    """An action and its parameters by id."""

    name: str
    parameters: Mapping[int, TypedField]

    def arguments(self, action: p4r.Action, peer_of: PeerOf) -> dict[str, Value]:
        """Typed arguments by name, in the order of the declaration."""
        given = {param.param_id: param.value for param in action.params}
        return {
            field.name: field.from_bytes(given[number], peer_of)
            for number, field in self.parameters.items()
            if number in given
        }


@dataclass(frozen=True, slots=True)
class TableView:
    """A table: its key by field id, actions and direct resources.

    counts: whether it has a direct counter
    meters: whether it has a direct meter
    profile_id: its action profile or selector, else 0
    """

    id: int
    name: str
    fields: Mapping[int, TypedField]
    action_ids: tuple[int, ...]
    counts: bool
    meters: bool
    const_default: bool
    is_const: bool
    profile_id: int

    def key(self, match: tuple[p4r.FieldMatch, ...], peer_of: PeerOf) -> dict[str, Value]:
        """Typed key by field name, in the order of the declaration; None: don't care."""
        given = {field.field_id: field for field in match}
        return {
            field.name: field.from_match(given[number], peer_of) if number in given else None
            for number, field in self.fields.items()
        }


class ProgramView:
    """The objects of one P4Info message by id."""

    def __init__(self, info: p4i.P4Info) -> None:
        """Indexes the message; unknown types are shown as numbers."""
        self.info = info
        types = info.type_info
        self._names = entities("table", info.tables)
        names = entities("action", info.actions)
        self.actions = {
            number: ActionView(
                names.shown(number),
                {
                    param: self._with_enum(names.shown(number), field)
                    for param, field in fields_of(action.params, types).items()
                },
            )
            for number, action in names.by_id.items()
        }
        direct = {counter.direct_table_id for counter in info.direct_counters}
        metered = {meter.direct_table_id for meter in info.direct_meters}
        self.tables = {
            table.preamble.id: TableView(
                table.preamble.id,
                self._names.shown(table.preamble.id),
                fields_of(table.match_fields, types),
                tuple(ref.id for ref in table.action_refs),
                table.preamble.id in direct,
                table.preamble.id in metered,
                bool(table.const_default_action_id),
                table.is_const_table,
                table.implementation_id,
            )
            for table in info.tables
        }
        self.counters = entities("counter", info.counters)
        self.direct_counters = entities("direct counter", info.direct_counters)
        self.registers = entities("register", info.registers)
        self.profiles = entities("action profile", info.action_profiles)
        self.constants = {
            pair.key: pair.value.int64_value
            for annotation in info.pkg_info.structured_annotations
            if annotation.name == _SWITCH_ANNOTATION
            for pair in annotation.kv_pair_list.kv_pairs
        }
        """Constants of the annotation @switch[cpu_port=...] of the program."""
        self.special_ports = {
            number: _SPECIAL_PORTS[key] for key, number in self.constants.items() if key in _SPECIAL_PORTS
        }
        """Ports without interfaces."""

    @property
    def name(self) -> str:
        """The program's name; empty: P4Info has none."""
        return self.info.pkg_info.name

    def shown(self, kind: str) -> list[str]:
        """The shown names of all tables, counters or registers."""
        return [names.shown(number) for names in self._of_kind(kind) for number in names.by_id]

    def named(self, kind: str, name: str) -> list[str]:
        """The shown names of all tables, counters or registers that match a name."""
        return [names.shown(number) for names in self._of_kind(kind) for number in names.meanings(name)]

    def _of_kind(self, kind: str) -> Sequence[NameIndex[Any]]:
        of_kind: dict[str, Sequence[NameIndex[Any]]] = {
            "table": (self._names,),
            "register": (self.registers,),
            "counter": (self.counters, self.direct_counters),
        }
        return of_kind[kind]

    def table(self, name: str) -> TableView | None:
        """The table with a name; None: none, or several."""
        try:
            return self.tables[self._names.id_of(name)]
        except SpecError:
            return None

    def enum(self, name: str) -> Mapping[int, str]:
        """Names of an enum's values; empty: no such enum."""
        return enum_members(self.info.type_info, name)

    def enum_value(self, name: str, member: str) -> int | None:
        return next((number for number, text in self.enum(name).items() if text == member), None)

    def register_size(self, name: str) -> int:
        """The cells of a register; 0: no such register."""
        return next((register.size for register in self.info.registers if register.preamble.alias == name), 0)

    def index_field(self, owner: str) -> TypedField:
        """The index field of a counter, register or meter.

        It is a port if the owner's name has "port" in it, or is in PORT_COUNTERS; else a number. The part
        before a dot names the instance, and does not count.
        """
        owner = owner.rpartition(".")[2]
        by_port = owner in PORT_COUNTERS or "port" in owner.lower().split("_")
        kind = FieldKind.PORT if by_port else FieldKind.NUMBER
        return self._with_enum(owner, TypedField("index", 32, kind, {}))

    def _with_enum(self, owner: str, field: TypedField) -> TypedField:
        members = self.enum(ENUM_FIELDS.get((owner, field.name), ""))
        return dataclasses.replace(field, kind=FieldKind.ENUM, members=members) if members else field
