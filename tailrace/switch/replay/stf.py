# SPDX-License-Identifier: Apache-2.0
"""A saved trace as a test in p4c's STF, as its runner for BMv2 reads it (backends/bmv2/bmv2stf.py).

That language adds entries with exact, LPM and ternary keys and plain actions, sets default actions, registers
and rates of meters, and makes multicast groups and clone sessions; then packets come and are expected. Action
profiles, range and optional keys, value sets, direct meters and truncated clones it cannot say: one line says
which of them the trace has. Its runner passes what it does not read itself on to simple_switch_CLI, so names
are written only where they are plain words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from finsy.proto import p4i

from tailrace.spec import SpecError
from tailrace.switch.replay.document import Frame, SavedTrace
from tailrace.switch.replay.entities import (
    ActionInvocation,
    CloneEntity,
    Entity,
    GroupEntity,
    MatchValue,
    MemberEntity,
    MeterConfig,
    MeterEntity,
    MulticastEntity,
    RegisterEntity,
    ReplicaPort,
    TableEntity,
    ValueSetEntity,
)
from tailrace.switch.replay.entity_codec import EntityCodec, field_name

_NAME = re.compile(r"[A-Za-z_][\w.$\[\]]*", re.ASCII)
_MATCHES = (p4i.MatchField.EXACT, p4i.MatchField.LPM, p4i.MatchField.TERNARY)
"""Match types that it has."""

_PER_US = 1_000_000
"""Rates of simple_switch_CLI are in units per microsecond."""


def test(saved: SavedTrace) -> str:
    """The test.

    Raises:
        SpecError: STF cannot say it; begins with the key.
    """
    return "\n".join(_StfTest(saved).lines()) + "\n"


class _StfTest:
    def __init__(self, saved: SavedTrace) -> None:
        self._document = saved.document
        self._codec = EntityCodec(saved.p4info)
        self._types = saved.p4info.type_info.new_types
        self._nodes = 0
        entries = [entity for entity in saved.document.entities if isinstance(entity, TableEntity)]
        # of one table the order is all that counts
        self._ranks = {
            priority: rank for rank, priority in enumerate(sorted({entry.priority for entry in entries}), 1)
        }
        self._groups = {
            entity.group for entity in saved.document.entities if isinstance(entity, MulticastEntity)
        }

    def lines(self) -> Iterator[str]:
        document = self._document
        settings = document.switch
        yield "# Made of a saved trace by tailrace trace --export."
        yield f"# program: SHA-256 of its BMv2 JSON {document.program.sha256}"
        yield (
            f"# simple_switch's options: -- --drop-port {settings.drop_port} "
            f"--priority-queues {settings.priority_queues}"
        )
        for reason in document.unsure:
            yield f"# what comes of it depends on: {reason}"
        for at, entity in enumerate(document.entities):
            try:
                yield from self._SAYS[type(entity)](self, entity)
            except SpecError as error:
                raise SpecError(f"entities[{at}]: STF cannot say it: {error}") from None
        yield f"packet {self._frame('packet', document.packet)}"
        for frame in document.expected.sent:
            yield f"expect {self._frame('expected', frame)}$"
        if not document.expected.sent:
            yield f"# nothing leaves: {', '.join(document.expected.dropped) or 'the packet ends'}"

    @staticmethod
    def _frame(key: str, frame: Frame) -> str:
        if not frame.frame:
            raise SpecError(f"{key}: STF cannot say it: a frame without bytes")
        return f"{frame.port} {frame.frame}"

    # ---- entities ----

    def _entry(self, entity: TableEntity) -> Iterator[str]:
        table = self._codec.tables.named(entity.table)
        if entity.call is None:
            raise SpecError("a default action that is none" if entity.default else "an action profile")
        if entity.meter is not None:
            raise SpecError("a direct meter")
        name, call = _quoted(entity.table), self._call(entity.call)
        if entity.default:
            yield f"setdefault {name} {call}"
            return
        fields = {field_name(field): field for field in table.match_fields}
        keys = [
            f"{_quoted(name)}:{_key(self._checked(fields[name]), match)}"
            for name, match in entity.key.items()
        ]
        if not keys:
            raise SpecError("an entry without a key")
        ternary = any(field.match_type == p4i.MatchField.TERNARY for field in table.match_fields)
        priority = f"{self._ranks[entity.priority]} " if ternary else ""
        yield f"add {name} {priority}{' '.join(keys)} {call}"

    def _call(self, entity: ActionInvocation) -> str:
        for param in self._codec.actions.named(entity.action).params:
            self._checked(param)
        pairs = (f"{_quoted(name)}:{value}" for name, value in entity.arguments.items())
        return f"{_quoted(entity.action)}({', '.join(pairs)})"

    def _checked(self, one: Any) -> Any:
        """A field or parameter, whose values must be those of the data plane."""
        if one.HasField("type_name") and self._types[one.type_name.name].HasField("translated_type"):
            raise SpecError(f"{one.name}: values that are translated")
        return one

    def _multicast(self, entity: MulticastEntity) -> Iterator[str]:
        yield from self._replicated(entity.group, entity.replicas)

    def _clone(self, entity: CloneEntity) -> Iterator[str]:
        if entity.truncate_bytes or entity.class_of_service:
            raise SpecError("a clone session that truncates packets, or has a class of service")
        # a group of its own, for only a group's copies have an instance
        group = next(number for number in range(1, 1 << 16) if number not in self._groups)
        self._groups.add(group)
        yield from self._replicated(group, entity.replicas)
        yield f"mirroring_add_mc {entity.session} {group}"

    def _replicated(self, group: int, replicas: Sequence[ReplicaPort]) -> Iterator[str]:
        yield f"mc_mgrp_create {group}"
        by_instance: dict[int, list[int]] = {}
        for replica in replicas:
            by_instance.setdefault(replica.instance, []).append(replica.port)
        for instance, ports in by_instance.items():
            yield f"mc_node_create {instance} {' '.join(map(str, ports))}"
            yield f"mc_node_associate {group} {self._nodes}"
            self._nodes += 1

    def _register(self, entity: RegisterEntity) -> Iterator[str]:
        value = self._codec.register_value(entity)
        if not -1 << 63 <= value < 1 << 63:
            raise SpecError("a value of more than 63 bits")
        yield f"register_write {_checked_name(entity.register)} {entity.index} {value}"

    def _meter(self, entity: MeterEntity) -> Iterator[str]:
        yield f"meter_set_rates {_checked_name(entity.meter)} {entity.index} {_rates(entity.rates)}"

    def _no(self, entity: Entity) -> Iterator[str]:
        raise SpecError("a value set" if isinstance(entity, ValueSetEntity) else "an action profile")

    _SAYS: Mapping[type, Callable[[_StfTest, Any], Iterator[str]]] = {
        TableEntity: _entry,
        MulticastEntity: _multicast,
        CloneEntity: _clone,
        RegisterEntity: _register,
        MeterEntity: _meter,
        ValueSetEntity: _no,
        MemberEntity: _no,
        GroupEntity: _no,
    }


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SpecError(f"the name {name[:40]!r}")
    return name


def _quoted(name: str) -> str:
    return f'"{_checked_name(name)}"'


def _rates(entity: MeterConfig) -> str:
    if entity.eburst:
        raise SpecError("a meter with an excess burst")
    pairs = ((entity.cir, entity.cburst), (entity.pir, entity.pburst))
    return " ".join(f"{rate // _PER_US}.{rate % _PER_US:06}:{burst}" for rate, burst in pairs)


def _key(field: p4i.MatchField, entity: MatchValue) -> str:
    """The value of a key; with a mask or prefix in base 2, where a star is a bit that does not matter."""
    if field.match_type not in _MATCHES:
        raise SpecError("a range or optional key")
    if field.match_type == p4i.MatchField.EXACT:
        return str(entity.value)
    value, bits = int(str(entity.value), 16), field.bitwidth
    if field.match_type == p4i.MatchField.LPM:
        mask = ((1 << bits) - 1) & ~((1 << max(0, bits - (entity.prefix or 0))) - 1)
    else:
        mask = int(str(entity.mask), 16)
    digits = (str(value >> at & 1) if mask >> at & 1 else "*" for at in reversed(range(bits)))
    return f"0b{''.join(digits)}"
