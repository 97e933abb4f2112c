# SPDX-License-Identifier: Apache-2.0
"""Indexed counters, meters, registers, and parser value sets (P4Runtime specification 9.3, 9.4, 9.6, 9.7).

A plan (schema.py) describes an object of P4Info: its id and name, its index in the program, its size. `Work`
(context.py) is a request in steps: a generator that yields the units of work of each step. A cell takes
ENTITY units. After QUANTUM units the request pauses, so that the server handles other calls.

Calls of the switch core: `*_raw` and `*_store` copy cells as 64-bit integers; `*_cells` convert them. `Undo`
is the list of functions that roll back a batch; its `reserve_cells` bounds the old values in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Generic, NamedTuple, TypeVar

from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.core.externs import Raw, cell_ranges
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.context import ENTITY, MODIFY, QUANTUM, Context, Responses, Undo, Work
from tailrace.switch.p4runtime.entities.counts import check_counter, fill_counter
from tailrace.switch.p4runtime.entities.match import PackedKey
from tailrace.switch.p4runtime.entities.meters import (
    NOTHING_COUNTED,
    check_reset,
    fill_colours,
    fill_config,
    parse_rates,
)
from tailrace.switch.p4runtime.entities.schema import ArrayPlan, MeterPlan, RegisterPlan, Schema, ValueSetPlan

_P = TypeVar("_P", bound=ArrayPlan | MeterPlan | RegisterPlan)
_Q = TypeVar("_Q", ArrayPlan, MeterPlan, RegisterPlan, ValueSetPlan)


def only_modify(kind: int, what: str) -> None:
    """Rejects all updates but MODIFY."""
    if kind != MODIFY:
        raise invalid(f"{what} can only be modified")


def chosen(plans: dict[int, _Q], plan_id: int, what: str) -> list[_Q]:
    """The plan with an id, or all plans for id 0, the wildcard.

    Raises:
        P4RtError: NOT_FOUND.
    """
    if plan_id == 0:
        return list(plans.values())
    return [find_plan(plans, plan_id, what)]


def find_plan(plans: dict[int, _Q], plan_id: int, what: str) -> _Q:
    """The plan with an id.

    Raises:
        P4RtError: NOT_FOUND.
    """
    plan = plans.get(plan_id)
    if plan is None:
        raise not_found(f"there is no {what} with id {plan_id}")
    return plan


def indexes(plan: ArrayPlan | MeterPlan | RegisterPlan, message: _Indexed) -> range:
    """The cells that a message refers to: one, or all if its index is unset.

    Raises:
        P4RtError: INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for an index beyond the end.
    """
    if not message.HasField("index"):
        return range(plan.size)
    index = message.index.index
    if index < 0:
        raise invalid(f"'{plan.name}': index {index} is negative; its cells are 0..{plan.size - 1}")
    if index >= plan.size:
        raise P4RtError(Code.OUT_OF_RANGE, f"'{plan.name}': index {index} is not below its size {plan.size}")
    return range(index, index + 1)


_Indexed = p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry


def parts(cells: range) -> Iterator[tuple[int, int]]:
    """Splits cells into ranges (first, count), each of a quantum of work at most."""
    for first, count in cell_ranges(len(cells), QUANTUM // ENTITY):
        yield cells.start + first, count


class _Arrays(Generic[_P]):
    """Arrays of cells: counters, meters, registers."""

    def __init__(self, plans: dict[int, _P], context: Context) -> None:
        self._plans = plans
        self._context = context

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    def _write_cells(self, cells: range, write: Callable[[int, int], None]) -> Work:
        """Writes cells in quanta, each atomic for packets; with --strict, all cells in one atomic step.

        `write`: writes a range of cells (first, count).
        """
        if not self._context.strict:
            for first, count in parts(cells):
                write(first, count)
                yield QUANTUM
            return
        with self._switch.between_packets():
            for first, count in parts(cells):
                write(first, count)
        yield ENTITY * len(cells)

    def demand(self, plan_id: int, message: _Indexed) -> int:
        """The number of cells that a read request may return."""
        if message.HasField("index"):
            return 1
        if plan_id:
            plan = self._plans.get(plan_id)
            return 0 if plan is None else plan.size
        return sum(plan.size for plan in self._plans.values())

    def _shared(self, other: dict[int, _P]) -> Iterator[tuple[_P, _P, range]]:
        """The arrays that both pipelines have: the two plans, and the cells that both have."""
        for plan in self._plans.values():
            other_plan = other.get(plan.id)
            if other_plan is not None:
                yield plan, other_plan, range(min(plan.size, other_plan.size))


class Counters(_Arrays[ArrayPlan]):
    """All indirect counters."""

    def write(self, kind: int, message: p4r.CounterEntry, undo: Undo | None) -> Work | None:
        """Applies one update, in steps."""
        plan = find_plan(self._plans, message.counter_id, "counter")
        only_modify(kind, "a counter")
        cells = indexes(plan, message)
        if not message.HasField("data"):
            return None
        check_counter(message.data, f"counter '{plan.name}'")
        if undo is not None:
            undo.reserve_cells(len(cells), f"counter '{plan.name}'")
            for first, count in parts(cells):
                undo.append(self._undo_step(plan, first, self._switch.counter_raw(plan.index, first, count)))
        value = (message.data.byte_count, message.data.packet_count)  # the same for each cell
        switch = self._switch
        return self._write_cells(
            cells, lambda first, count: switch.counter_store(plan.index, first, value * count)
        )

    def _undo_step(self, plan: ArrayPlan, first: int, old: Raw) -> Callable[[], None]:
        return lambda: self._switch.counter_store(plan.index, first, old)

    def read(self, message: p4r.CounterEntry, out: Responses) -> Work:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.counter_id, "counter"):
            for first, count in parts(indexes(plan, message)):
                read = self._switch.counter_cells(plan.index, first, count)
                for index, (byte_count, packet_count) in enumerate(read, first):
                    entry = out.add().counter_entry
                    entry.counter_id = plan.id
                    entry.index.index = index
                    fill_counter(byte_count, packet_count, entry.data)
                yield ENTITY * count

    def carry(self, old: Counters) -> Work:
        """Copies the values of another pipeline's counters, for the cells that both have."""
        for plan, old_plan, cells in self._shared(old._plans):
            for first, count in cell_ranges(len(cells)):  # larger than `parts`: copies take less time
                self._switch.counter_store(
                    plan.index, first, old._switch.counter_raw(old_plan.index, first, count)
                )
                yield QUANTUM


class Meters(_Arrays[MeterPlan]):
    """All indirect meters."""

    def write(self, kind: int, message: p4r.MeterEntry, undo: Undo | None) -> Work:
        """Applies one update, in steps."""
        plan = find_plan(self._plans, message.meter_id, "meter")
        only_modify(kind, "a meter")
        cells = indexes(plan, message)
        what = f"meter '{plan.name}'"
        resets = message.HasField("counter_data")
        check_reset(message.counter_data, what)
        rates = parse_rates(message.config, plan) if message.HasField("config") else None
        if undo is not None:
            undo.reserve_cells(len(cells), what)

        def write(first: int, count: int) -> None:
            if undo is not None:
                undo.append(self._undo_step(plan, first, count, counts=resets))
            self._switch.meter_set_cells(plan.index, first, count, rates)
            if resets:
                self._switch.colours_store(plan.index, first, NOTHING_COUNTED * count)

        return self._write_cells(cells, write)

    def _undo_step(self, plan: MeterPlan, first: int, count: int, *, counts: bool) -> Callable[[], None]:
        switch = self._switch
        old = switch.meter_cells(plan.index, first, count)
        counted = switch.colours_raw(plan.index, first, count) if counts else None

        def undo() -> None:
            for index, rates in enumerate(old, first):
                switch.meter_set(plan.index, index, rates)
            if counted is not None:
                switch.colours_store(plan.index, first, counted)

        return undo

    def read(self, message: p4r.MeterEntry, out: Responses) -> Work:
        """Answers one request of a Read; counts are read only if it sets `counter_data`.

        A meter without rates has no `config` in responses.
        """
        counted = message.HasField("counter_data")
        for plan in chosen(self._plans, message.meter_id, "meter"):
            for first, count in parts(indexes(plan, message)):
                colours = self._switch.colours_cells(plan.index, first, count) if counted else []
                for offset, rates in enumerate(self._switch.meter_cells(plan.index, first, count)):
                    entry = out.add().meter_entry
                    entry.meter_id = plan.id
                    entry.index.index = first + offset
                    if rates is not None:
                        fill_config(rates, entry.config)
                    if counted:
                        fill_colours(colours[offset], entry.counter_data)
                yield ENTITY * count

    def carry(self, old: Meters) -> Work:
        """Copies the rates of another pipeline's meters, and the counts of the cells that both have.

        Raises:
            P4RtError: the new pipeline lacks a cell that has rates, or its meter has another type.
        """
        for old_plan in old._plans.values():
            plan = self._plans.get(old_plan.id)
            for first, count in parts(range(old_plan.size)):
                for index, rates in enumerate(old._switch.meter_cells(old_plan.index, first, count), first):
                    if rates is None:
                        continue
                    if plan is None or plan.type != old_plan.type or index >= plan.size:
                        raise invalid(
                            f"meter '{old_plan.name}': the new program lacks cell {index}, which has rates"
                        )
                    self._switch.meter_set(plan.index, index, rates)
                yield ENTITY * count
        for plan, old_plan, cells in self._shared(old._plans):
            for first, count in parts(cells):
                counted = old._switch.colours_raw(old_plan.index, first, count)
                self._switch.colours_store(plan.index, first, counted)
                yield QUANTUM


class Registers(_Arrays[RegisterPlan]):
    """All registers."""

    def write(self, kind: int, message: p4r.RegisterEntry, undo: Undo | None) -> Work:
        """Applies one update, in steps."""
        plan = find_plan(self._plans, message.register_id, "register")
        only_modify(kind, "a register")
        cells = indexes(plan, message)
        if not message.HasField("data"):
            raise invalid(f"register '{plan.name}': data is missing")
        value = 0
        scalars = plan.type.decode(message.data, f"register '{plan.name}'")
        for scalar, bits in zip(scalars, plan.type.widths, strict=True):
            value = value << bits | scalar
        if undo is not None:
            undo.reserve_cells(len(cells), f"register '{plan.name}'")

        def write(first: int, count: int) -> None:
            if undo is not None:
                old = self._switch.register_raw(plan.index, first, count)
                undo.append(self._undo_step(plan, first, old))
            self._switch.register_set_cells(plan.index, first, count, value)

        return self._write_cells(cells, write)

    def _undo_step(self, plan: RegisterPlan, first: int, old: Raw) -> Callable[[], None]:
        return lambda: self._switch.register_store(plan.index, first, old)

    def read(self, message: p4r.RegisterEntry, out: Responses) -> Work:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.register_id, "register"):
            for first, count in parts(indexes(plan, message)):
                for index, value in enumerate(self._switch.register_cells(plan.index, first, count), first):
                    entry = out.add().register_entry
                    entry.register_id = plan.id
                    entry.index.index = index
                    plan.type.encode(iter(_split(value, plan.type.widths)), entry.data)
                yield ENTITY * count

    def carry(self, old: Registers) -> Work:
        """Copies another pipeline's registers, for the cells that both have.

        Raises:
            P4RtError: a register's cells have another width in the new program, and are not all zero.
        """
        for plan, old_plan, cells in self._shared(old._plans):
            same_widths = plan.type.widths == old_plan.type.widths
            for first, count in cell_ranges(len(cells)):  # larger than `parts`: copies take less time
                raw = old._switch.register_raw(old_plan.index, first, count)
                if same_widths:
                    self._switch.register_store(plan.index, first, raw)
                elif any(raw):
                    raise invalid(
                        f"register '{plan.name}' has another width in the new program, and is not all zero"
                    )
                yield QUANTUM


def _split(value: int, widths: tuple[int, ...]) -> list[int]:
    """The scalars of a cell, the first in its most significant bits."""
    if len(widths) == 1:
        return [value]
    scalars = []
    for bits in reversed(widths):
        scalars.append(value & (1 << bits) - 1)
        value >>= bits
    return scalars[::-1]


class _ValueSetMembers(NamedTuple):
    """The members of a value set: as given by the client, and as values and masks for the parser."""

    given: Sequence[PackedKey] = ()
    masked: Sequence[tuple[bytes, bytes]] = ()


_NO_MEMBERS = _ValueSetMembers()


class ValueSets:
    """All parser value sets."""

    MOST_MEMBERS = 4096
    """Most members of a set, as the parser compares a packet with each of them."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._plans = schema.value_sets
        self._context = context
        self._members: dict[int, _ValueSetMembers] = {}

    def write(self, kind: int, message: p4r.ValueSetEntry, undo: Undo | None) -> None:
        """Applies one update."""
        plan = find_plan(self._plans, message.value_set_id, "value set")
        only_modify(kind, "a value set")
        size = min(plan.size, self.MOST_MEMBERS)
        if len(message.members) > size:
            raise exhausted(
                f"value set '{plan.name}' has {len(message.members)} members; the limit is {size}"
            )
        packed = [plan.key.pack(member.match) for member in message.members]
        members = list(dict.fromkeys(packed))
        if len(members) < len(packed):
            raise P4RtError(Code.ALREADY_EXISTS, f"value set '{plan.name}': a member is given twice")
        # a member with ranges becomes several pairs of value and mask
        masked = list(islice(chain.from_iterable(map(plan.key.masked, members)), self.MOST_MEMBERS + 1))
        if len(masked) > self.MOST_MEMBERS:
            raise exhausted(
                f"value set '{plan.name}': its ranges expand to more than {self.MOST_MEMBERS} prefixes"
            )
        new = _ValueSetMembers(members, masked)
        if undo is not None:
            old = self._members.get(plan.id, _NO_MEMBERS)
            undo.append(lambda: self._set(plan, old))
        self._set(plan, new)

    def _set(self, plan: ValueSetPlan, members: _ValueSetMembers) -> None:
        before = self._members.get(plan.id, _NO_MEMBERS)
        more_bytes = memory.SET_MEMBER * (len(members.masked) - len(before.masked))
        self._context.memory.reserve(more_bytes, f"value set '{plan.name}'")
        try:
            self._context.switch.vset_set(plan.index, members.masked)
        except StateError:
            self._context.memory.release(more_bytes)
            raise
        self._members[plan.id] = members

    def demand(self, message: p4r.ValueSetEntry) -> int:
        """The number of entities that a read request may return, plus their members."""
        if message.value_set_id:
            return 1 + len(self._members.get(message.value_set_id, _NO_MEMBERS).given)
        return sum(1 + len(members.given) for members in self._members.values()) + len(self._plans)

    def read(self, message: p4r.ValueSetEntry, out: Responses) -> Work:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, message.value_set_id, "value set"):
            entry = out.add().value_set_entry
            entry.value_set_id = plan.id
            for packed in self._members.get(plan.id, _NO_MEMBERS).given:
                plan.key.unpack(packed, entry.members.add().match)
            yield ENTITY * (1 + len(entry.members))
