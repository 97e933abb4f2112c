# SPDX-License-Identifier: Apache-2.0
"""Counters, meters and registers by index, and parser value sets (P4Runtime specification 9.3, 9.4, 9.6,
9.7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from finsy.proto import p4r

from native.runtime import MeterRates
from native.switchd.p4rt.context import MODIFY, Context, Responses, Undo
from native.switchd.p4rt.errors import Code, P4RtError, invalid, not_found
from native.switchd.p4rt.match import Kind, PackedKey
from native.switchd.p4rt.meters import fill_config, parse_rates, refuse_colour_counters
from native.switchd.p4rt.schema import ArrayPlan, MeterPlan, RegisterPlan, Schema, ValueSetPlan
from native.switchd.p4rt.tables import check_counter

_P = TypeVar("_P", ArrayPlan, MeterPlan, RegisterPlan, ValueSetPlan)


def only_modify(kind: int, what: str) -> None:
    """Refuses all updates but MODIFY."""
    if kind != MODIFY:
        raise invalid(f"{what} can only be modified")


def chosen(plans: dict[int, _P], plan_id: int, what: str) -> list[_P]:
    """The plan with an id, or all for id 0.

    Raises:
        P4RtError: NOT_FOUND.
    """
    if plan_id == 0:
        return list(plans.values())
    return [one(plans, plan_id, what)]


def one(plans: dict[int, _P], plan_id: int, what: str) -> _P:
    """The plan with an id.

    Raises:
        P4RtError: NOT_FOUND.
    """
    plan = plans.get(plan_id)
    if plan is None:
        raise not_found(f"there is no {what} with id {plan_id}")
    return plan


def indexes(plan: ArrayPlan | MeterPlan | RegisterPlan, message: _Indexed) -> range:
    """The cells that a message names: one, or all when its index is unset.

    Raises:
        P4RtError: INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one behind the end.
    """
    if not message.HasField("index"):
        return range(plan.size)
    index = message.index.index
    if index < 0:
        raise invalid(f"'{plan.name}': index {index} is negative")
    if index >= plan.size:
        raise P4RtError(Code.OUT_OF_RANGE, f"'{plan.name}': index {index} is not below its size {plan.size}")
    return range(index, index + 1)


_Indexed = p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry


class Counters:
    """All indirect counters."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._plans = schema.counters
        self._switch = context.switch

    def write(self, kind: int, message: p4r.CounterEntry, undo: Undo | None) -> None:
        """Applies one update."""
        plan = one(self._plans, message.counter_id, "counter")
        only_modify(kind, "a counter")
        cells = indexes(plan, message)
        if not message.HasField("data"):
            return
        check_counter(message.data)
        value = (message.data.byte_count, message.data.packet_count)
        if undo is not None:
            old = self._read(plan, cells)
            undo.append(lambda: self._set(plan, cells, iter(old)))
        self._set(plan, cells, (value for _ in cells))

    def _set(self, plan: ArrayPlan, cells: range, values: Iterator[tuple[int, int]]) -> None:
        for index, (byte_count, packet_count) in zip(cells, values, strict=False):
            self._switch.counter_write(plan.index, index, byte_count, packet_count)

    def _read(self, plan: ArrayPlan, cells: range) -> list[tuple[int, int]]:
        if len(cells) == 1:
            return [self._switch.counter_read(plan.index, cells.start)]
        return list(self._switch.counter_read_all(plan.index))

    def read(self, message: p4r.CounterEntry, out: Responses) -> None:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.counter_id, "counter"):
            cells = indexes(plan, message)
            for index, (byte_count, packet_count) in zip(cells, self._read(plan, cells), strict=True):
                entry = out.add().counter_entry
                entry.counter_id = plan.id
                entry.index.index = index
                entry.data.SetInParent()
                entry.data.byte_count = byte_count
                entry.data.packet_count = packet_count


class Meters:
    """All indirect meters; the switch does not give their rates back, so they are kept here."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._plans = schema.meters
        self._switch = context.switch
        self._rates: dict[tuple[int, int], MeterRates] = {}

    def write(self, kind: int, message: p4r.MeterEntry, undo: Undo | None) -> None:
        """Applies one update."""
        plan = one(self._plans, message.meter_id, "meter")
        only_modify(kind, "a meter")
        cells = indexes(plan, message)
        if message.HasField("counter_data"):
            raise refuse_colour_counters()
        rates = parse_rates(message.config, plan) if message.HasField("config") else None
        if undo is not None:
            old = [(index, self._rates.get((plan.id, index))) for index in cells]
            undo.append(lambda: self._set_all(plan, old))
        self._set_all(plan, ((index, rates) for index in cells))

    def _set_all(self, plan: MeterPlan, cells: Iterable[tuple[int, MeterRates | None]]) -> None:
        for index, rates in cells:
            self._set(plan, index, rates)

    def _set(self, plan: MeterPlan, index: int, rates: MeterRates | None) -> None:
        if rates == self._rates.get((plan.id, index)):
            return
        self._switch.meter_set(plan.index, index, rates)
        if rates is None:
            del self._rates[plan.id, index]
        else:
            self._rates[plan.id, index] = rates

    def read(self, message: p4r.MeterEntry, out: Responses) -> None:
        """Answers one request of a Read; a meter in its default configuration has no `config`."""
        if message.HasField("counter_data"):
            raise refuse_colour_counters()
        for plan in chosen(self._plans, message.meter_id, "meter"):
            for index in indexes(plan, message):
                entry = out.add().meter_entry
                entry.meter_id = plan.id
                entry.index.index = index
                rates = self._rates.get((plan.id, index))
                if rates is not None:
                    fill_config(rates, entry.config)


class Registers:
    """All registers."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._plans = schema.registers
        self._switch = context.switch

    def write(self, kind: int, message: p4r.RegisterEntry, undo: Undo | None) -> None:
        """Applies one update."""
        plan = one(self._plans, message.register_id, "register")
        only_modify(kind, "a register")
        cells = indexes(plan, message)
        if not message.HasField("data"):
            raise invalid(f"register '{plan.name}': data is missing")
        value = 0
        scalars = plan.type.decode(message.data, f"register '{plan.name}'")
        for scalar, bits in zip(scalars, plan.type.widths, strict=True):
            value = value << bits | scalar
        if undo is not None:
            old = self._read(plan, cells)
            undo.append(lambda: self._set(plan, cells, iter(old)))
        if value == 0 and len(cells) == plan.size:
            self._switch.register_reset(plan.index)
        else:
            self._set(plan, cells, (value for _ in cells))

    def _set(self, plan: RegisterPlan, cells: range, values: Iterator[int]) -> None:
        for index, value in zip(cells, values, strict=False):
            self._switch.register_write(plan.index, index, value)

    def _read(self, plan: RegisterPlan, cells: range) -> list[int]:
        if len(cells) == 1:
            return [self._switch.register_read(plan.index, cells.start)]
        return self._switch.register_read_all(plan.index)

    def read(self, message: p4r.RegisterEntry, out: Responses) -> None:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.register_id, "register"):
            cells = indexes(plan, message)
            for index, value in zip(cells, self._read(plan, cells), strict=True):
                entry = out.add().register_entry
                entry.register_id = plan.id
                entry.index.index = index
                plan.type.encode(iter(_split(value, plan.type.widths)), entry.data)


def _split(value: int, widths: tuple[int, ...]) -> list[int]:
    """The scalars of a cell, the first in its most significant bits."""
    if len(widths) == 1:
        return [value]
    scalars = []
    for bits in reversed(widths):
        scalars.append(value & (1 << bits) - 1)
        value >>= bits
    return scalars[::-1]


class ValueSets:
    """All parser value sets."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._plans = schema.value_sets
        self._switch = context.switch
        self._members: dict[int, list[PackedKey]] = {}

    def write(self, kind: int, message: p4r.ValueSetEntry, undo: Undo | None) -> None:
        """Applies one update."""
        plan = one(self._plans, message.value_set_id, "value set")
        only_modify(kind, "a value set")
        if message.members and any(field.kind is Kind.RANGE for field in plan.key.fields):
            raise P4RtError(Code.UNIMPLEMENTED, f"value set '{plan.name}': range matches are not supported")
        members: list[PackedKey] = []
        for member in message.members:
            packed = plan.key.pack(member.match)
            if packed in members:
                raise P4RtError(Code.ALREADY_EXISTS, f"value set '{plan.name}': a member is given twice")
            members.append(packed)
        if len(members) > plan.size:
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"value set '{plan.name}' holds {plan.size} members")
        if undo is not None:
            old = self._members.get(plan.id, [])
            undo.append(lambda: self._set(plan, old))
        self._set(plan, members)

    def _set(self, plan: ValueSetPlan, members: list[PackedKey]) -> None:
        self._switch.vset_set(plan.index, [(packed.key, packed.mask) for packed in members])
        self._members[plan.id] = members

    def read(self, message: p4r.ValueSetEntry, out: Responses) -> None:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.value_set_id, "value set"):
            entry = out.add().value_set_entry
            entry.value_set_id = plan.id
            for packed in self._members.get(plan.id, []):
                plan.key.unpack(packed, entry.members.add().match)
