# SPDX-License-Identifier: Apache-2.0
"""Indexed counters, meters, registers, and parser value sets (P4Runtime specification 9.3, 9.4, 9.6, 9.7).

A plan (schema.py) describes an object of P4Info: its id and name, its index in the program, its size. `Work`
(context.py) is a request in steps: a generator that yields the units of work of each step. A cell takes
ENTITY units. After QUANTUM units the request pauses, so that the server handles other calls.

Calls of the switch core: `*_raw` and `*_store` copy cells as 64-bit integers; `*_cells` convert them. `Undo`
is the list of functions that roll back a batch; its `reserve_cells` bounds the old values in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.core.externs import cell_ranges
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.context import ENTITY, MODIFY, QUANTUM, Context, Responses, Undo, Work, finish
from tailrace.switch.p4runtime.entities.match import PackedKey
from tailrace.switch.p4runtime.entities.meters import (
    NOTHING_COUNTED,
    check_counter,
    check_reset,
    fill_colours,
    fill_config,
    fill_counter,
    parse_rates,
)
from tailrace.switch.p4runtime.entities.schema import (
    MeterPlan,
    RegisterPlan,
    Schema,
    SizedPlan,
    ValueSetPlan,
    chosen,
    find,
)

_P = TypeVar("_P", bound=SizedPlan)


def only_modify(kind: int, what: str) -> None:
    """Rejects all updates but MODIFY."""
    if kind != MODIFY:
        raise invalid(f"{what} can only be modified")


def indexes(plan: SizedPlan, message: _Indexed) -> range:
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
_CellWriter = Callable[[int, int], None]
"""Writes a range of cells (first, count)."""
_CellSaver = Callable[[int, int], Callable[[], None]]
"""Reads a range of cells; returns a function that writes them again."""


def parts(cells: range) -> Iterator[tuple[int, int]]:
    """Splits cells into ranges (first, count), each of a quantum of work at most."""
    for first, count in cell_ranges(len(cells), QUANTUM // ENTITY):
        yield cells.start + first, count


class _Arrays(ABC, Generic[_P]):
    """Arrays of cells: counters, meters, registers."""

    kind: ClassVar[str]
    """The kind in errors, and in the names of fields of messages, such as `counter_id`."""

    def __init__(self, plans: dict[int, _P], context: Context) -> None:
        self._plans = plans
        self._context = context

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    def _id(self, message: _Indexed) -> int:
        array_id: int = getattr(message, f"{self.kind}_id")
        return array_id

    def write(self, kind: int, message: Any, undo: Undo | None) -> Work | None:
        """Applies one update, in steps: quanta of cells, each atomic for packets; with --strict one step."""
        plan = find(self._plans, self._id(message), self.kind)
        only_modify(kind, f"a {self.kind}")
        cells, what = indexes(plan, message), f"{self.kind} '{plan.name}'"
        change = self._change(plan, message, what)
        if change is None:
            return None
        if undo is not None:
            undo.reserve_cells(len(cells), what)
        steps = self._steps(cells, *change, undo)
        return self._in_one_step(steps, ENTITY * len(cells)) if self._context.settings.strict else steps

    @staticmethod
    def _steps(cells: range, write: _CellWriter, save: _CellSaver, undo: Undo | None) -> Work:
        for first, count in parts(cells):
            if undo is not None:
                undo.append(save(first, count))
            write(first, count)
            yield QUANTUM

    def _in_one_step(self, steps: Work, work: int) -> Work:
        with self._switch.between_packets():
            finish(steps)
        yield work

    @abstractmethod
    def _change(self, plan: _P, message: Any, what: str) -> tuple[_CellWriter, _CellSaver] | None:
        """The functions that write and save a range of an update's cells; None: it changes nothing."""

    def read(self, message: Any, out: Responses) -> Work:
        """Answers one request of a Read."""
        for plan in chosen(self._plans, self._id(message), self.kind):
            for first, count in parts(indexes(plan, message)):
                self._read(plan, first, count, message, out)
                yield ENTITY * count

    @abstractmethod
    def _read(self, plan: _P, first: int, count: int, message: Any, out: Responses) -> None:
        """Adds a range of cells to a response."""

    def demand(self, message: _Indexed) -> int:
        """The number of cells that a read request may return."""
        if message.HasField("index"):
            return 1
        if self._id(message):
            plan = self._plans.get(self._id(message))
            return 0 if plan is None else plan.size
        return sum(plan.size for plan in self._plans.values())

    def _shared(self, other: dict[int, _P]) -> Iterator[tuple[_P, _P, range]]:
        """The arrays that both pipelines have: the two plans, and the cells that both have."""
        for plan in self._plans.values():
            other_plan = other.get(plan.id)
            if other_plan is not None:
                yield plan, other_plan, range(min(plan.size, other_plan.size))


class Counters(_Arrays[SizedPlan]):
    """All indirect counters."""

    kind = "counter"

    def _change(
        self, plan: SizedPlan, message: p4r.CounterEntry, what: str
    ) -> tuple[_CellWriter, _CellSaver] | None:
        if not message.HasField("data"):
            return None
        check_counter(message.data, what)
        value = (message.data.byte_count, message.data.packet_count)  # the same for each cell
        switch = self._switch
        store = partial(switch.counter_store, plan.index)

        def save(first: int, count: int) -> Callable[[], None]:
            return partial(store, first, switch.counter_raw(plan.index, first, count))

        return lambda first, count: store(first, value * count), save

    def _read(
        self, plan: SizedPlan, first: int, count: int, _message: p4r.CounterEntry, out: Responses
    ) -> None:
        read = self._switch.counter_cells(plan.index, first, count)
        for index, (byte_count, packet_count) in enumerate(read, first):
            entry = out.add().counter_entry
            entry.counter_id = plan.id
            entry.index.index = index
            fill_counter(byte_count, packet_count, entry.data)

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

    kind = "meter"

    def _change(self, plan: MeterPlan, message: p4r.MeterEntry, what: str) -> tuple[_CellWriter, _CellSaver]:
        switch, resets = self._switch, message.HasField("counter_data")
        check_reset(message.counter_data, what)
        rates = parse_rates(message.config, plan) if message.HasField("config") else None

        def write(first: int, count: int) -> None:
            switch.meter_set_cells(plan.index, first, count, rates)
            if resets:
                switch.colours_store(plan.index, first, NOTHING_COUNTED * count)

        def save(first: int, count: int) -> Callable[[], None]:
            old = switch.meter_cells(plan.index, first, count)
            counted = switch.colours_raw(plan.index, first, count) if resets else None

            def restore() -> None:
                for index, old_rates in enumerate(old, first):
                    switch.meter_set(plan.index, index, old_rates)
                if counted is not None:
                    switch.colours_store(plan.index, first, counted)

            return restore

        return write, save

    def _read(self, plan: MeterPlan, first: int, count: int, message: p4r.MeterEntry, out: Responses) -> None:
        """Reads counts only if the request sets `counter_data`; a meter without rates has no `config`."""
        counted = message.HasField("counter_data")
        colours = self._switch.colours_cells(plan.index, first, count) if counted else []
        for offset, rates in enumerate(self._switch.meter_cells(plan.index, first, count)):
            entry = out.add().meter_entry
            entry.meter_id = plan.id
            entry.index.index = first + offset
            if rates is not None:
                fill_config(rates, entry.config)
            if counted:
                fill_colours(colours[offset], entry.counter_data)

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

    kind = "register"

    def _change(
        self, plan: RegisterPlan, message: p4r.RegisterEntry, what: str
    ) -> tuple[_CellWriter, _CellSaver]:
        if not message.HasField("data"):
            raise invalid(f"{what}: data is missing")
        value = 0
        for scalar, bits in zip(plan.type.decode(message.data, what), plan.type.widths, strict=True):
            value = value << bits | scalar

        switch = self._switch

        def save(first: int, count: int) -> Callable[[], None]:
            old = switch.register_raw(plan.index, first, count)
            return partial(switch.register_store, plan.index, first, old)

        return lambda first, count: switch.register_set_cells(plan.index, first, count, value), save

    def _read(
        self, plan: RegisterPlan, first: int, count: int, _message: p4r.RegisterEntry, out: Responses
    ) -> None:
        for index, value in enumerate(self._switch.register_cells(plan.index, first, count), first):
            entry = out.add().register_entry
            entry.register_id = plan.id
            entry.index.index = index
            plan.type.encode(iter(_split(value, plan.type.widths)), entry.data)

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
        plan = find(self._plans, message.value_set_id, "value set")
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
        with self._context.memory.reserved(more_bytes, f"value set '{plan.name}'"):
            self._context.switch.vset_set(plan.index, members.masked)
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
