# SPDX-License-Identifier: Apache-2.0
"""Codec between entities by name and P4Runtime messages, with a program's P4Info.

Names are checked here, values by the switch that receives the message. Messages with fields that entities by
name lack cannot be saved.
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
"""By match type: the field of FieldMatch, and the fields of its message by their names here."""


def octets(text: str) -> bytes:
    """The octets of a text in base 16."""
    return bytes.fromhex(text[2:])


def base16(data: bytes) -> str:
    return f"0x{data.hex() or '00'}"


class _NameTable:
    """Objects of one kind in P4Info, by name and by id."""

    def __init__(self, what: str, objects: Iterable[Any]) -> None:
        self._what = what
        self.by_id = {item.preamble.id: item for item in objects}
        self._by_name = {item.preamble.name: item for item in self.by_id.values()}

    def named(self, name: str) -> Any:
        match = self._by_name.get(name)
        if match is None:
            raise SpecError(f"no {self._what} {name[:80]!r} in P4Info; {expected(name, self._by_name)}")
        return match

    def name(self, number: int) -> str:
        match = self.by_id.get(number)
        if match is None:
            raise SpecError(f"no {self._what} with the id {number} in P4Info")
        return str(match.preamble.name)


class EntityCodec:
    """Entity codec of one program."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._types = info.type_info
        self.tables = _NameTable("table", info.tables)
        self.actions = _NameTable("action", info.actions)
        self.profiles = _NameTable("action profile", info.action_profiles)
        self.registers = _NameTable("register", info.registers)
        self.meters = _NameTable("meter", info.meters)
        self.value_sets = _NameTable("value set", info.value_sets)

    # ---- to messages ----

    def encode(self, entity: Entity) -> p4r.Entity:
        """An entity as a message.

        Raises:
            SpecError: P4Info has no such name, or a key is missing or unexpected.
        """
        out = p4r.Entity()
        self._encode(entity, out)
        return out

    @singledispatchmethod
    def _encode(self, entity: Any, out: p4r.Entity) -> None:
        raise AssertionError(entity, out)

    @_encode.register
    def _(self, entity: MemberEntity, out: p4r.Entity) -> None:
        member = out.action_profile_member
        member.action_profile_id = self.profiles.named(entity.profile).preamble.id
        member.member_id = entity.id
        self._encode_action(entity.call, member.action)

    @_encode.register
    def _(self, entity: GroupEntity, out: p4r.Entity) -> None:
        group = out.action_profile_group
        group.action_profile_id = self.profiles.named(entity.profile).preamble.id
        group.group_id, group.max_size = entity.id, entity.max_size
        for share in entity.members:
            group.members.add(member_id=share.member, weight=share.weight)

    @_encode.register
    def _(self, entity: TableEntity, out: p4r.Entity) -> None:
        entry, table = out.table_entry, self.tables.named(entity.table)
        entry.table_id, entry.priority = table.preamble.id, entity.priority
        entry.is_default_action = entity.default
        self._encode_key(entity.key, table.match_fields, entry.match)
        targets = [entity.call, entity.member, entity.group, entity.one_of]
        given = sum(target is not None for target in targets)
        if given > 1 or (not given and not entity.default):
            raise SpecError("expected one of call, member, group and one_of")
        if entity.call is not None:
            self._encode_action(entity.call, entry.action.action)
        elif entity.member is not None:
            entry.action.action_profile_member_id = entity.member
        elif entity.group is not None:
            entry.action.action_profile_group_id = entity.group
        elif entity.one_of is not None:
            actions = entry.action.action_profile_action_set
            actions.SetInParent()
            for weighted in entity.one_of:
                item = actions.action_profile_actions.add(weight=weighted.weight)
                self._encode_action(weighted.call, item.action)
            if entity.first is not None:
                first = p4r.Action()
                self._encode_action(entity.first, first)
                write_group_action(first, actions)
        if entity.meter is not None:
            _encode_meter_config(entity.meter, entry.meter_config)

    @_encode.register
    def _(self, entity: MulticastEntity, out: p4r.Entity) -> None:
        group = out.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = entity.group
        _encode_replicas(entity.replicas, group.replicas)

    @_encode.register
    def _(self, entity: CloneEntity, out: p4r.Entity) -> None:
        session = out.packet_replication_engine_entry.clone_session_entry
        session.session_id = entity.session
        session.class_of_service, session.packet_length_bytes = entity.class_of_service, entity.truncate_bytes
        _encode_replicas(entity.replicas, session.replicas)

    @_encode.register
    def _(self, entity: RegisterEntity, out: p4r.Entity) -> None:
        cell = out.register_entry
        cell.register_id = self.registers.named(entity.register).preamble.id
        cell.index.index = entity.index
        cell.data.bitstring = octets(entity.value)

    @_encode.register
    def _(self, entity: MeterEntity, out: p4r.Entity) -> None:
        cell = out.meter_entry
        cell.meter_id = self.meters.named(entity.meter).preamble.id
        cell.index.index = entity.index
        _encode_meter_config(entity.rates, cell.config)

    @_encode.register
    def _(self, entity: ValueSetEntity, out: p4r.Entity) -> None:
        value_set = self.value_sets.named(entity.value_set)
        out.value_set_entry.value_set_id = value_set.preamble.id
        for key in entity.members:
            self._encode_key(key, value_set.match, out.value_set_entry.members.add().match)

    def register_value(self, cell: RegisterEntity) -> int:
        """The data-plane value of a register's cell. Raises SpecError if P4Info translates it."""
        spec = original(self.registers.named(cell.register).type_spec, self._types)
        if spec.HasField("new_type"):
            raise SpecError(f"register {cell.register}: values that are translated")
        signed = data_field(cell.register, spec, self._types).signed
        return int.from_bytes(octets(cell.value), "big", signed=signed)

    def _encode_action(self, entity: ActionInvocation, out: p4r.Action) -> None:
        action = self.actions.named(entity.action)
        out.action_id = action.preamble.id
        params = {param.name: param.id for param in action.params}
        for name, value in entity.arguments.items():
            if name not in params:
                raise SpecError(
                    f"action {entity.action}: no parameter {name[:80]!r}; {expected(name, params)}"
                )
            out.params.add(param_id=params[name], value=octets(value))

    def _encode_key(self, entity: Key, fields: Iterable[p4i.MatchField], out: Any) -> None:
        named = {field_name(field): field for field in fields}
        for name, match in entity.items():
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

    def decode(self, message: p4r.Entity) -> Entity:
        """A message as an entity by name.

        Raises:
            SpecError: P4Info lacks its ids, or its kind has no names.
        """
        which = message.WhichOneof("entity")
        decoder = self._DECODERS.get(which or "")
        if decoder is None:
            raise SpecError(f"a {which} cannot be saved")
        return decoder(self, getattr(message, which or ""))

    def _member(self, m: p4r.ActionProfileMember) -> Entity:
        return MemberEntity(
            self.profiles.name(m.action_profile_id), m.member_id, self._decode_action(m.action)
        )

    def _group(self, m: p4r.ActionProfileGroup) -> Entity:
        shares = tuple(GroupMember(member.member_id, member.weight) for member in m.members)
        return GroupEntity(self.profiles.name(m.action_profile_id), m.group_id, shares, m.max_size)

    def _entry(self, m: p4r.TableEntry) -> Entity:
        name = self.tables.name(m.table_id)
        target: dict[str, Any] = {}
        which = m.action.WhichOneof("type")
        if which == "action":
            target["call"] = self._decode_action(m.action.action)
        elif which == "action_profile_member_id":
            target["member"] = m.action.action_profile_member_id
        elif which == "action_profile_group_id":
            target["group"] = m.action.action_profile_group_id
        elif which is not None:
            actions = m.action.action_profile_action_set
            target["one_of"] = tuple(
                WeightedAction(self._decode_action(item.action), item.weight)
                for item in actions.action_profile_actions
            )
            first = read_group_action(actions, name)
            target["first"] = None if first is None else self._decode_action(first)
        return TableEntity(
            name,
            self._decode_key(m.match, self.tables.by_id[m.table_id].match_fields),
            m.priority,
            m.is_default_action,
            meter=_decode_meter_config(m.meter_config) if m.HasField("meter_config") else None,
            **target,
        )

    def _replication(self, m: p4r.PacketReplicationEngineEntry) -> Entity:
        if m.WhichOneof("type") == "multicast_group_entry":
            group = m.multicast_group_entry
            return MulticastEntity(group.multicast_group_id, _decode_replicas(group.replicas))
        session = m.clone_session_entry
        return CloneEntity(
            session.session_id,
            _decode_replicas(session.replicas),
            session.class_of_service,
            session.packet_length_bytes,
        )

    def _register(self, m: p4r.RegisterEntry) -> Entity:
        name = self.registers.name(m.register_id)
        if m.data.WhichOneof("data") != "bitstring":
            raise SpecError(f"register {name}: cells that are no bits cannot be saved")
        return RegisterEntity(name, m.index.index, base16(m.data.bitstring))

    def _meter(self, m: p4r.MeterEntry) -> Entity:
        return MeterEntity(self.meters.name(m.meter_id), m.index.index, _decode_meter_config(m.config))

    def _value_set(self, m: p4r.ValueSetEntry) -> Entity:
        name = self.value_sets.name(m.value_set_id)
        fields = self.value_sets.by_id[m.value_set_id].match
        return ValueSetEntity(name, tuple(self._decode_key(member.match, fields) for member in m.members))

    _DECODERS: Mapping[str, Callable[[EntityCodec, Any], Entity]] = {
        "action_profile_member": _member,
        "action_profile_group": _group,
        "table_entry": _entry,
        "packet_replication_engine_entry": _replication,
        "register_entry": _register,
        "meter_entry": _meter,
        "value_set_entry": _value_set,
    }

    def _decode_action(self, m: p4r.Action) -> ActionInvocation:
        name = self.actions.name(m.action_id)
        params = {param.id: param.name for param in self.actions.by_id[m.action_id].params}
        return ActionInvocation(name, {params[param.param_id]: base16(param.value) for param in m.params})

    @staticmethod
    def _decode_key(matches: Iterable[p4r.FieldMatch], fields: Iterable[p4i.MatchField]) -> Key:
        by_id = {field.id: field for field in fields}
        key = {}
        for match in matches:
            field = by_id[match.field_id]
            kind, parts = _MATCHES[field.match_type]
            values = {part: getattr(getattr(match, kind), at) for part, at in parts.items()}
            entries: Any = {part: base16(v) if isinstance(v, bytes) else v for part, v in values.items()}
            key[field_name(field)] = MatchValue(**entries)
        return key


def field_name(field: p4i.MatchField) -> str:
    """The name of a match field, or its id."""
    return field.name or str(field.id)


def _encode_meter_config(entity: MeterConfig, out: p4r.MeterConfig) -> None:
    out.SetInParent()
    for name in MeterConfig.__struct_fields__:
        setattr(out, name, getattr(entity, name))


def _decode_meter_config(m: p4r.MeterConfig) -> MeterConfig:
    return MeterConfig(m.cir, m.cburst, m.pir, m.pburst, m.eburst)


def _encode_replicas(entity: Iterable[ReplicaPort], out: Any) -> None:
    for replica in entity:
        out.add(egress_port=replica.port, instance=replica.instance)


def _decode_replicas(messages: Iterable[p4r.Replica]) -> tuple[ReplicaPort, ...]:
    return tuple(ReplicaPort(m.egress_port, m.instance) for m in messages)
