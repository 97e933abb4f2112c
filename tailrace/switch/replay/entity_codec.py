# SPDX-License-Identifier: Apache-2.0
"""Entities by name to messages of P4Runtime and back, with a program's P4Info.

What a message says beyond what entities by name do cannot be saved; what a name means is checked here, and
whether values fit is left to the switch that takes the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import singledispatchmethod
from typing import Any

from finsy.proto import p4i, p4r

from tailrace.p4rt.fields import data_field, original
from tailrace.spec import SpecError
from tailrace.spec.suggest import expected
from tailrace.switch.p4runtime.entities.group_action import read_group_action, write_group_action
from tailrace.switch.replay.entities import (
    ActionInvocation,
    CloneEntity,
    Entity,
    GroupEntity,
    GroupMember,
    Key,
    MatchValue,
    MemberEntity,
    MeterConfig,
    MeterEntity,
    MulticastEntity,
    RegisterEntity,
    ReplicaPort,
    TableEntity,
    ValueSetEntity,
    WeightedAction,
)

_MATCHES = {
    p4i.MatchField.EXACT: ("exact", {"value": "value"}),
    p4i.MatchField.LPM: ("lpm", {"value": "value", "prefix": "prefix_len"}),
    p4i.MatchField.TERNARY: ("ternary", {"value": "value", "mask": "mask"}),
    p4i.MatchField.RANGE: ("range", {"low": "low", "high": "high"}),
    p4i.MatchField.OPTIONAL: ("optional", {"value": "value"}),
}
"""Of each match type the field of FieldMatch, and of its message those that have another name here."""


def octets(text: str) -> bytes:
    """What a text in base 16 holds."""
    return bytes.fromhex(text[2:])


def base16(data: bytes) -> str:
    return f"0x{data.hex() or '00'}"


class _NameTable:
    """Objects of one kind in P4Info, by name and by id."""

    def __init__(self, what: str, found: Iterable[Any]) -> None:
        self._what = what
        self.by_id = {one.preamble.id: one for one in found}
        self._by_name = {one.preamble.name: one for one in self.by_id.values()}

    def named(self, name: str) -> Any:
        found = self._by_name.get(name)
        if found is None:
            raise SpecError(f"no {self._what} {name[:80]!r} in P4Info; {expected(name, self._by_name)}")
        return found

    def name(self, number: int) -> str:
        found = self.by_id.get(number)
        if found is None:
            raise SpecError(f"no {self._what} with the id {number} in P4Info")
        return str(found.preamble.name)


class EntityCodec:
    """Of one program."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._types = info.type_info
        self.tables = _NameTable("table", info.tables)
        self.actions = _NameTable("action", info.actions)
        self.profiles = _NameTable("action profile", info.action_profiles)
        self.registers = _NameTable("register", info.registers)
        self.meters = _NameTable("meter", info.meters)
        self.value_sets = _NameTable("value set", info.value_sets)

    # ---- to messages ----

    def message(self, said: Entity) -> p4r.Entity:
        """An entity as a message.

        Raises:
            SpecError: P4Info has no such name, or a part of it is missing or too much.
        """
        out = p4r.Entity()
        self._write(said, out)
        return out

    @singledispatchmethod
    def _write(self, said: Any, out: p4r.Entity) -> None:
        raise AssertionError(said, out)

    @_write.register
    def _(self, said: MemberEntity, out: p4r.Entity) -> None:
        member = out.action_profile_member
        member.action_profile_id = self.profiles.named(said.profile).preamble.id
        member.member_id = said.id
        self._call(said.call, member.action)

    @_write.register
    def _(self, said: GroupEntity, out: p4r.Entity) -> None:
        group = out.action_profile_group
        group.action_profile_id = self.profiles.named(said.profile).preamble.id
        group.group_id, group.max_size = said.id, said.max_size
        for share in said.members:
            group.members.add(member_id=share.member, weight=share.weight)

    @_write.register
    def _(self, said: TableEntity, out: p4r.Entity) -> None:
        entry, table = out.table_entry, self.tables.named(said.table)
        entry.table_id, entry.priority = table.preamble.id, said.priority
        entry.is_default_action = said.default
        self._key(said.key, table.match_fields, entry.match)
        targets = [said.call, said.member, said.group, said.one_of]
        given = sum(target is not None for target in targets)
        if given > 1 or (not given and not said.default):
            raise SpecError("expected one of call, member, group and one_of")
        if said.call is not None:
            self._call(said.call, entry.action.action)
        elif said.member is not None:
            entry.action.action_profile_member_id = said.member
        elif said.group is not None:
            entry.action.action_profile_group_id = said.group
        elif said.one_of is not None:
            actions = entry.action.action_profile_action_set
            actions.SetInParent()
            for weighted in said.one_of:
                item = actions.action_profile_actions.add(weight=weighted.weight)
                self._call(weighted.call, item.action)
            if said.first is not None:
                first = p4r.Action()
                self._call(said.first, first)
                write_group_action(first, actions)
        if said.meter is not None:
            _write_rates(said.meter, entry.meter_config)

    @_write.register
    def _(self, said: MulticastEntity, out: p4r.Entity) -> None:
        group = out.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = said.group
        _write_replicas(said.replicas, group.replicas)

    @_write.register
    def _(self, said: CloneEntity, out: p4r.Entity) -> None:
        session = out.packet_replication_engine_entry.clone_session_entry
        session.session_id = said.session
        session.class_of_service, session.packet_length_bytes = said.class_of_service, said.truncate_bytes
        _write_replicas(said.replicas, session.replicas)

    @_write.register
    def _(self, said: RegisterEntity, out: p4r.Entity) -> None:
        cell = out.register_entry
        cell.register_id = self.registers.named(said.register).preamble.id
        cell.index.index = said.index
        cell.data.bitstring = octets(said.value)

    @_write.register
    def _(self, said: MeterEntity, out: p4r.Entity) -> None:
        cell = out.meter_entry
        cell.meter_id = self.meters.named(said.meter).preamble.id
        cell.index.index = said.index
        _write_rates(said.rates, cell.config)

    @_write.register
    def _(self, said: ValueSetEntity, out: p4r.Entity) -> None:
        found = self.value_sets.named(said.value_set)
        out.value_set_entry.value_set_id = found.preamble.id
        for key in said.members:
            self._key(key, found.match, out.value_set_entry.members.add().match)

    def register_value(self, cell: RegisterEntity) -> int:
        """The number in a register's cell, as the data plane has it; SpecError where P4Info translates it."""
        spec = original(self.registers.named(cell.register).type_spec, self._types)
        if spec.HasField("new_type"):
            raise SpecError(f"register {cell.register}: values that are translated")
        signed = data_field(cell.register, spec, self._types).signed
        return int.from_bytes(octets(cell.value), "big", signed=signed)

    def _call(self, said: ActionInvocation, out: p4r.Action) -> None:
        action = self.actions.named(said.action)
        out.action_id = action.preamble.id
        params = {param.name: param.id for param in action.params}
        for name, value in said.arguments.items():
            if name not in params:
                raise SpecError(f"action {said.action}: no parameter {name[:80]!r}; {expected(name, params)}")
            out.params.add(param_id=params[name], value=octets(value))

    def _key(self, said: Key, fields: Iterable[p4i.MatchField], out: Any) -> None:
        named = {field_name(field): field for field in fields}
        for name, match in said.items():
            field = named.get(name)
            if field is None or field.match_type not in _MATCHES:
                raise SpecError(f"no match field {name[:80]!r}; {expected(name, named)}")
            kind, parts = _MATCHES[field.match_type]
            given = {part for part in MatchValue.__struct_fields__ if getattr(match, part) is not None}
            if given != set(parts):
                raise SpecError(f"match field {name}: expected {' and '.join(parts)}, for it is {kind}")
            message = out.add(field_id=field.id)
            for part, at in parts.items():
                value = getattr(match, part)
                setattr(getattr(message, kind), at, value if isinstance(value, int) else octets(value))

    # ---- from messages ----

    def said(self, message: p4r.Entity) -> Entity:
        """A message by name.

        Raises:
            SpecError: it has ids that P4Info does not know, or is of a kind that has no names.
        """
        which = message.WhichOneof("entity")
        read = self._READ.get(which or "")
        if read is None:
            raise SpecError(f"a {which} cannot be saved")
        return read(self, getattr(message, which or ""))

    def _member(self, m: p4r.ActionProfileMember) -> Entity:
        return MemberEntity(self.profiles.name(m.action_profile_id), m.member_id, self._called(m.action))

    def _group(self, m: p4r.ActionProfileGroup) -> Entity:
        shares = tuple(GroupMember(one.member_id, one.weight) for one in m.members)
        return GroupEntity(self.profiles.name(m.action_profile_id), m.group_id, shares, m.max_size)

    def _entry(self, m: p4r.TableEntry) -> Entity:
        name = self.tables.name(m.table_id)
        target: dict[str, Any] = {}
        which = m.action.WhichOneof("type")
        if which == "action":
            target["call"] = self._called(m.action.action)
        elif which == "action_profile_member_id":
            target["member"] = m.action.action_profile_member_id
        elif which == "action_profile_group_id":
            target["group"] = m.action.action_profile_group_id
        elif which is not None:
            actions = m.action.action_profile_action_set
            target["one_of"] = tuple(
                WeightedAction(self._called(one.action), one.weight) for one in actions.action_profile_actions
            )
            first = read_group_action(actions, name)
            target["first"] = None if first is None else self._called(first)
        return TableEntity(
            name,
            self._keyed(m.match, self.tables.by_id[m.table_id].match_fields),
            m.priority,
            m.is_default_action,
            meter=_rates(m.meter_config) if m.HasField("meter_config") else None,
            **target,
        )

    def _replication(self, m: p4r.PacketReplicationEngineEntry) -> Entity:
        if m.WhichOneof("type") == "multicast_group_entry":
            group = m.multicast_group_entry
            return MulticastEntity(group.multicast_group_id, _replicas(group.replicas))
        session = m.clone_session_entry
        return CloneEntity(
            session.session_id,
            _replicas(session.replicas),
            session.class_of_service,
            session.packet_length_bytes,
        )

    def _register(self, m: p4r.RegisterEntry) -> Entity:
        name = self.registers.name(m.register_id)
        if m.data.WhichOneof("data") != "bitstring":
            raise SpecError(f"register {name}: cells that are no bits cannot be saved")
        return RegisterEntity(name, m.index.index, base16(m.data.bitstring))

    def _meter(self, m: p4r.MeterEntry) -> Entity:
        return MeterEntity(self.meters.name(m.meter_id), m.index.index, _rates(m.config))

    def _value_set(self, m: p4r.ValueSetEntry) -> Entity:
        name = self.value_sets.name(m.value_set_id)
        fields = self.value_sets.by_id[m.value_set_id].match
        return ValueSetEntity(name, tuple(self._keyed(member.match, fields) for member in m.members))

    _READ: Mapping[str, Callable[[EntityCodec, Any], Entity]] = {
        "action_profile_member": _member,
        "action_profile_group": _group,
        "table_entry": _entry,
        "packet_replication_engine_entry": _replication,
        "register_entry": _register,
        "meter_entry": _meter,
        "value_set_entry": _value_set,
    }

    def _called(self, m: p4r.Action) -> ActionInvocation:
        name = self.actions.name(m.action_id)
        params = {param.id: param.name for param in self.actions.by_id[m.action_id].params}
        return ActionInvocation(name, {params[param.param_id]: base16(param.value) for param in m.params})

    @staticmethod
    def _keyed(matches: Iterable[p4r.FieldMatch], fields: Iterable[p4i.MatchField]) -> Key:
        by_id = {field.id: field for field in fields}
        key = {}
        for match in matches:
            field = by_id[match.field_id]
            kind, parts = _MATCHES[field.match_type]
            values = {part: getattr(getattr(match, kind), at) for part, at in parts.items()}
            said: Any = {part: base16(v) if isinstance(v, bytes) else v for part, v in values.items()}
            key[field_name(field)] = MatchValue(**said)
        return key


def field_name(field: p4i.MatchField) -> str:
    """What a match field is called."""
    return field.name or str(field.id)


def _write_rates(said: MeterConfig, out: p4r.MeterConfig) -> None:
    out.SetInParent()
    for name in MeterConfig.__struct_fields__:
        setattr(out, name, getattr(said, name))


def _rates(m: p4r.MeterConfig) -> MeterConfig:
    return MeterConfig(m.cir, m.cburst, m.pir, m.pburst, m.eburst)


def _write_replicas(said: Iterable[ReplicaPort], out: Any) -> None:
    for replica in said:
        out.add(egress_port=replica.port, instance=replica.instance)


def _replicas(messages: Iterable[p4r.Replica]) -> tuple[ReplicaPort, ...]:
    return tuple(ReplicaPort(m.egress_port, m.instance) for m in messages)
