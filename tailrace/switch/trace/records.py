# SPDX-License-Identifier: Apache-2.0
"""Decodes the trace records of the switch core (tr_tracer.h) into events.

A record consists of 64-bit fields: kind, packet number, time, and the payload. A limb is a 64-bit part of a
value, the least significant first; a value of W bits has limbs_of(W) limbs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar, cast

import msgspec
from msgspec import structs

from tailrace.switch.compiler.expr import FieldRef, HeaderInst
from tailrace.switch.compiler.model import (
    Conditional,
    Extract,
    KeyPart,
    Model,
    Param,
    ParserSet,
    Primitive,
    Verify,
)
from tailrace.switch.core.encoding import limbs_to_int, split_limbs
from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.trace import events
from tailrace.switch.trace.field_layout import (
    VALID,
    FieldLayout,
    PacketFields,
    from_twos_complement,
    shown_name,
)

DescribeEntity = Callable[[Literal["entry", "member", "group"], str, int], str]
"""Describes an entity in one line, as its controller wrote it. Arguments: kind, name of the table or action
profile, handle in it. Returns "" if the entity is not known.
"""


def no_description(_kind: Literal["entry", "member", "group"], _name: str, _handle: int) -> str:
    """The `DescribeEntity` of a switch without a controller."""
    return ""


_Wide = TypeVar("_Wide", KeyPart, Param)

_STAGES: tuple[events.Stage, ...] = ("parser", "verify", "ingress", "egress", "update", "deparser")
_COLOURS: tuple[Literal["green", "yellow", "red"], ...] = ("green", "yellow", "red")
_CHOICES: tuple[Literal["member", "colour", "random"], ...] = ("member", "colour", "random")
_LEVELS: tuple[Literal["trace", "info", "warning", "error"], ...] = ("trace", "info", "warning", "error")
IN_VALUE_SET = "in "
"""`SelectEvent.case` for a value set: this prefix and the set's name."""

MOST_DEPTH = 31
"""Deepest nesting of copies of copies in a trace; protobuf readers accept a hundred nested messages."""

TOO_DEEP = events.TextEvent("warning", f"copies of copies more than {MOST_DEPTH} deep are not shown")

_NO_INDEX = (1 << 64) - 1

# constants that are needed for each record: access to attributes of C is slow
_CHANGE, _EXTRACT, _STEP = C.TR_RECORD_CHANGE, C.TR_RECORD_EXTRACT, C.TR_RECORD_STEP
_ENTER, _COPY = C.TR_RECORD_ENTER, C.TR_RECORD_COPY
PACKET_ENDS = frozenset((C.TR_RECORD_SENT, C.TR_RECORD_DROP))
"""Kinds of records after which a packet is no longer in the switch."""

_OF_STATEMENTS = frozenset(
    (
        *(C.TR_RECORD_READ, C.TR_RECORD_WRITE, C.TR_RECORD_COUNT, C.TR_RECORD_METER, C.TR_RECORD_RANDOM),
        *(C.TR_RECORD_TEXT, C.TR_RECORD_CHOICE),
    )
)
_HEAD_SIZE = 4  # kind, packet, time, size of the payload, in 64-bit fields


class _Packet(msgspec.Struct):
    """The state of decoding one packet's records.

    content: the present values of its header and metadata fields
    steps: events that are not yet reported
    pipeline: the present stage (enum tr_stage)
    statement: the present statement: (enum tr_owner, index there, position)
    extracted: offset and length of the header that the present statement extracts
    state: index of the present parser state
    runs: bytes that the present statement has changed: (space, offset, bytes)
    externs: events of externs in the present statement, reported after the statement's event
    """

    content: PacketFields
    steps: list[events.Event] = msgspec.field(default_factory=list)
    pipeline: int = 0
    statement: tuple[int, int, int] | None = None
    extracted: tuple[int, int] | None = None
    state: int = 0
    runs: list[tuple[int, int, bytes]] = msgspec.field(default_factory=list)
    externs: list[events.Event] = msgspec.field(default_factory=list)


class TraceRecord(NamedTuple):
    """A record of the core: its kind, the packet's number, the switch's time in ps, and further fields."""

    kind: int
    packet: int
    time_ps: int
    payload: Sequence[int]

    @property
    def size(self) -> int:
        """The number of 64-bit fields, head included."""
        return _HEAD_SIZE + len(self.payload)


NumberedEvents = Sequence[tuple[int, events.Event]]
"""Events in the order of time, each after the number of its packet; copies' events are not nested."""


class RecordReader:
    """Decodes the records of one program."""

    def __init__(
        self,
        model: Model,
        layout: FieldLayout,
        describe: DescribeEntity = no_description,
    ) -> None:
        self._model = model
        self._layout = layout
        self._describe = describe
        self._errors = {number: name for name, number in model.errors.items()}
        self._signed_registers = frozenset(_signed_registers(model))
        self._handlers: dict[int, Callable[[Sequence[int]], events.Event]] = {
            getattr(C, f"TR_RECORD_{name.upper()}"): getattr(self, f"_{name}")
            for name in (
                "stage", "state", "select", "error", "table", "member", "action", "condition", "count",
                "meter", "checksum", "digest", "drop", "text", "choice",
            )
        }  # fmt: skip
        self._handlers |= {
            C.TR_RECORD_ENTER: lambda w: events.EnterEvent(*_frame(w)),
            C.TR_RECORD_SENT: lambda w: events.SentEvent(*_frame(w)),
            C.TR_RECORD_READ: lambda w: self._register("read", w),
            C.TR_RECORD_WRITE: lambda w: self._register("write", w),
            C.TR_RECORD_RANDOM: lambda w: events.RandomEvent(*w),
            C.TR_RECORD_CLONE: lambda w: events.CloneEvent(w[0], bool(w[1])),
            C.TR_RECORD_RESUBMIT: lambda _: events.ResubmitEvent(),
            C.TR_RECORD_RECIRCULATE: lambda _: events.RecirculateEvent(),
            C.TR_RECORD_MULTICAST: lambda w: events.MulticastEvent(*w),
            C.TR_RECORD_QUEUE: lambda w: events.QueueEvent(*w[:4]),
            C.TR_RECORD_EGRESS: lambda w: events.LeaveEvent(*w[:3]),
        }
        self._packets: dict[int, _Packet] = {}
        self._packet = _Packet(PacketFields(layout))
        """The packet of the present record."""

    def feed(self, records: Iterable[TraceRecord]) -> Iterator[tuple[int, events.Event]]:
        """Decodes further records into `NumberedEvents`.

        The last record must be the last of a stage. Records of a packet whose arrival was not recorded are
        skipped.
        """
        for kind, number, _, payload in records:
            if kind == _ENTER and number not in self._packets:
                self._packets[number] = _Packet(PacketFields(self._layout))
            packet = self._packets.get(number)
            if packet is None:
                continue
            if kind == _COPY:
                self._flush(packet)
                self._packets[payload[0]] = _Packet(packet.content.copy())
                port = None if payload[1] > C.TR_MAX_PORTS - 1 else payload[1]
                packet.steps.append(
                    events.CopyEvent(packet=payload[0], port=port, instance=payload[2], steps=())
                )
            else:
                self._record(packet, kind, payload)
            for step in packet.steps:
                yield number, step
            packet.steps.clear()
            if kind in PACKET_ENDS:
                del self._packets[number]
        for number, packet in self._packets.items():
            self._flush(packet)
            yield from ((number, step) for step in packet.steps)
            packet.steps.clear()

    def forget(self) -> None:
        """Removes all packets; to be called when records were lost."""
        self._packets.clear()

    def _record(self, packet: _Packet, kind: int, payload: Sequence[int]) -> None:
        if kind == _CHANGE:
            space, offset, length = payload[:3]
            packet.runs.append((space, offset, octets(payload[3:], length)))
            return
        if kind == _EXTRACT:
            packet.extracted = (payload[0], payload[1])
            return
        if kind == _STEP:
            self._flush(packet)
            packet.statement = (payload[0], payload[1], payload[2])
            return
        of_statement = packet.statement is not None and kind in _OF_STATEMENTS
        if not of_statement:
            self._flush(packet)
        self._packet = packet
        (packet.externs if of_statement else packet.steps).append(self._handlers[kind](payload))

    # ---- statements ----

    def _flush(self, packet: _Packet) -> None:
        """Completes the present statement: adds its event, with all changes, then those of its externs."""
        if packet.statement is None and not packet.runs:
            return
        changes = packet.content.write(packet.runs)
        packet.runs = []
        if packet.statement is None:
            if changes:  # by a checksum or a direct meter
                packet.steps.append(events.StatementEvent(text="", changes=changes))
        else:
            owner, index, position = packet.statement
            if owner == C.TR_OWNER_STATE:
                self._add_parser_event(packet, index, position, changes)
            else:
                calls = self._model.deparser_calls
                body = self._model.actions[index].body if owner == C.TR_OWNER_ACTION else calls
                packet.steps.append(_statement(body[position], changes))
        packet.statement = packet.extracted = None
        packet.steps += packet.externs
        packet.externs = []

    def _add_parser_event(
        self, packet: _Packet, state: int, position: int, changes: tuple[events.FieldChange, ...]
    ) -> None:
        """Adds the event of the operation at `position` in a parser state."""
        op = self._model.parser.states[state].ops[position]
        if isinstance(op, Primitive):
            packet.steps.append(_statement(op, changes))
        elif isinstance(op, Extract) and packet.extracted is not None:
            packet.steps.append(self._extract(packet, packet.extracted, changes, op))
        elif isinstance(op, ParserSet | Verify) or changes:
            text = "verify" if isinstance(op, Verify) else ""
            packet.steps.append(events.StatementEvent(text=text, changes=changes))

    def _extract(
        self, packet: _Packet, bounds: tuple[int, int], changes: tuple[events.FieldChange, ...], op: Extract
    ) -> events.ExtractEvent:
        # an element of a stack is identified by its validity bit, which changes unless it was valid before
        index = op.target.index if isinstance(op.target, HeaderInst) else None
        for change in changes:
            if index is None and change.field.endswith(VALID) and change.after:
                name = change.field.removesuffix(f".{VALID}")
                index = next(header.index for header in self._model.headers if header.name == name)
        header = self._model.headers[index].name if index is not None else "?"
        fields = tuple(
            events.Argument(f.name.removeprefix(f"{header}."), f.bits, packet.content.value(f))
            for f in (self._layout.by_header.get(index, []) if index is not None else [])
        )
        return events.ExtractEvent(header=header, offset=bounds[0], length=bounds[1], fields=fields)

    # ---- one method for each other kind of record; `w`: its payload, as tr_tracer.h lists it ----

    def _stage(self, w: Sequence[int]) -> events.Event:
        self._packet.pipeline = w[0]
        stage = _STAGES[w[0]]
        changes = self._packet.content.begin(octets(w[2:], w[1]))
        headers = self._valid() if stage == "deparser" else ()
        return events.BeginEvent(stage=stage, changes=changes, headers=headers)

    def _valid(self) -> tuple[str, ...]:
        """The valid headers, in the order in which the deparser emits them."""
        content = self._packet.content
        return tuple(
            self._model.headers[ref.index].name
            for ref in self._model.deparser
            if isinstance(ref, HeaderInst) and content.value(self._layout.valid[ref.index])
        )

    def _state(self, w: Sequence[int]) -> events.Event:
        self._packet.state = w[0]
        return events.StateEvent(name=self._model.parser.states[w[0]].name)

    def _select(self, w: Sequence[int]) -> events.Event:
        state = self._model.parser.states[self._packet.state]
        key = [
            events.KeyFieldValue(self._shown(part.value), part.bits, value)
            for part, value in _with_values(state.key, w[1:])
        ]
        if w[0] >= len(state.transitions):
            return events.SelectEvent(key=tuple(key), case="default", next=state.default)
        case = state.transitions[w[0]]
        if case.vset is not None:
            shown = IN_VALUE_SET + self._model.vsets[case.vset].name
        else:
            shown = ", ".join(
                "_"
                if not mask
                else f"{value:#x}"
                if mask == (1 << part.bits) - 1
                else f"{value:#x} &&& {mask:#x}"
                for part, (value, mask) in zip(state.key, case.values or (), strict=True)
            )
        return events.SelectEvent(key=tuple(key), case=shown, next=case.next)

    def _shown(self, value: object) -> str:
        """The name of an expression that is a field of a named header, else ""."""
        header, position = getattr(value, "header", None), getattr(value, "field", None)
        if not isinstance(header, HeaderInst) or not isinstance(position, int):
            return ""
        instance = self._model.headers[header.index]
        return shown_name(f"{instance.name}.{self._model.header_types[instance.type].fields[position].name}")

    def _error(self, w: Sequence[int]) -> events.Event:
        return events.ParserErrorEvent(name=self._errors.get(w[0], str(w[0])))

    def _table(self, w: Sequence[int]) -> events.Event:
        t = self._model.tables[w[0]]
        raw = octets(w[3:], w[2])
        key = tuple(
            events.KeyFieldValue(
                shown_name(k.name), k.bits, int.from_bytes(raw[k.offset : k.offset + k.nbytes], "big")
            )
            for k in t.key
        )
        entry = w[1] - 1 if w[1] else None  # the record has the handle plus 1; 0: a miss
        written = "" if entry is None else self._describe("entry", t.name, entry)
        return events.TableEvent(
            name=t.name, match=t.match_kind, key=key, entry=entry, place=t.source, written=written
        )

    def _member(self, w: Sequence[int]) -> events.Event:
        profile = self._model.profiles[w[0]].name
        group, member = (w[index] - 1 if w[index] else None for index in (1, 4))
        descriptions = ["" if group is None else self._describe("group", profile, group)]
        descriptions.append("" if member is None else self._describe("member", profile, member))
        return events.MemberEvent(
            profile=profile,
            group=group,
            position=w[2],
            of=w[3],
            member=member,
            written=", ".join(filter(None, descriptions)),
        )

    def _action(self, w: Sequence[int]) -> events.Event:
        action = self._model.actions[w[0]]
        arguments = tuple(
            events.Argument(p.name, p.bits, value) for p, value in _with_values(action.params, w[1:])
        )
        return events.ActionEvent(name=action.name, arguments=arguments, place=action.source)

    def _condition(self, w: Sequence[int]) -> events.Event:
        egress = self._packet.pipeline == C.TR_STAGE_EGRESS
        pipeline = self._model.egress if egress else self._model.ingress
        c: Conditional = pipeline.conditionals[w[0]]
        return events.ConditionEvent(name=c.name, text=c.text or c.name, value=bool(w[1]), place=c.source)

    def _register(self, access: Literal["read", "write"], w: Sequence[int]) -> events.Event:
        r = self._model.registers[w[0]]
        value = limbs_to_int(list(w[3:])) & (1 << r.bits) - 1 if len(w) > 3 else None
        if value is not None and r.index in self._signed_registers:
            value = from_twos_complement(value, r.bits)
        return events.RegisterEvent(
            name=r.name, access=access, index=w[1], inside=bool(w[2]), bits=r.bits, value=value
        )

    def _count(self, w: Sequence[int]) -> events.Event:
        return events.CountEvent(name=self._model.counters[w[0]].name, index=w[1], inside=bool(w[2]))

    def _meter(self, w: Sequence[int]) -> events.Event:
        index = None if w[1] == _NO_INDEX else w[1]
        return events.MeterEvent(name=self._model.meters[w[0]].name, index=index, colour=_COLOURS[w[3]])

    def _checksum(self, w: Sequence[int]) -> events.Event:
        target = self._shown(self._model.checksums[w[0]].target)
        return events.ChecksumEvent(field=target, action="update" if w[1] else "verify", right=bool(w[2]))

    def _digest(self, w: Sequence[int]) -> events.Event:
        digest, fields = self._model.digests[w[0]], []
        for (source, bits), value in zip(digest.values, split_limbs(w[1:], digest.field_bits), strict=True):
            number = from_twos_complement(value, bits) if _is_signed(self._model, source) else value
            fields.append(events.Argument(self._shown(source), bits, number))
        return events.DigestEvent(name=digest.name, fields=tuple(fields))

    def _drop(self, w: Sequence[int]) -> events.Event:
        return events.DropEvent(reason=drop_name(w[0]))

    def _text(self, w: Sequence[int]) -> events.Event:
        return events.TextEvent(level=_LEVELS[w[0]], text=octets(w[2:], w[1]).decode(errors="replace"))

    def _choice(self, w: Sequence[int]) -> events.Event:
        return events.ChoiceEvent(what=_CHOICES[w[0]], of=w[1], taken=w[2])


def nest(numbered: NumberedEvents, first: int) -> tuple[tuple[events.Event, ...], bool]:
    """The events of packet `first`, with the events of copies nested; whether some are nested too deeply.

    In copies nested more than MOST_DEPTH deep, TOO_DEEP replaces the events.
    """
    by_packet: dict[int, list[events.Event]] = {}
    copies: list[tuple[int, int]] = []
    depths = {first: 0}
    for number, step in numbered:
        steps = by_packet.setdefault(number, [])
        if isinstance(step, events.CopyEvent):
            copies.append((number, len(steps)))
            depths[step.packet] = depths.get(number, 0) + 1
        steps.append(step)
    # the newest copy first: copies of a copy have larger numbers than the copy
    for number, index in sorted(copies, key=lambda c: -cast(events.CopyEvent, by_packet[c[0]][c[1]]).packet):
        copy = cast(events.CopyEvent, by_packet[number][index])
        deep = depths[copy.packet] > MOST_DEPTH
        steps = [TOO_DEEP] if deep else by_packet.get(copy.packet, [])
        by_packet[number][index] = structs.replace(copy, steps=tuple(steps))
    return tuple(by_packet.get(first, ())), max(depths.values()) > MOST_DEPTH


def parse_records(buffer: Sequence[int]) -> Iterator[TraceRecord]:
    """Splits a buffer of the core into its records."""
    offset = 0
    while offset < len(buffer):
        kind, packet, time_ps, n = buffer[offset : offset + _HEAD_SIZE]
        offset += _HEAD_SIZE
        yield TraceRecord(kind, packet, time_ps, buffer[offset : offset + n])
        offset += n


def drop_name(reason: int) -> str:
    """The name of a drop reason (enum tr_drop)."""
    return str(ffi.string(load().tr_drop_name(reason)).decode())


def octets(limbs: Sequence[int], length: int) -> bytes:
    """The first `length` bytes of 64-bit limbs, least significant first."""
    return struct.pack(f"<{len(limbs)}Q", *limbs)[:length]


def _frame(w: Sequence[int]) -> tuple[int, str, int]:
    """Port, bytes in hexadecimal and virtual bytes of a frame that enters or is sent."""
    return w[0], octets(w[3:], w[1]).hex(), w[2]


def _with_values(parts: Sequence[_Wide], limbs: Sequence[int]) -> Iterator[tuple[_Wide, int]]:
    """Each part of a key, or each parameter, with its value in consecutive limbs."""
    return zip(parts, split_limbs(limbs, (part.bits for part in parts)), strict=True)


def _statement(p: Primitive, changes: tuple[events.FieldChange, ...]) -> events.StatementEvent:
    return events.StatementEvent(text=p.text or p.op, changes=changes, place=p.source)


def _is_signed(model: Model, value: object) -> bool:
    return isinstance(value, FieldRef) and model.field_type(value).signed


def _signed_registers(model: Model) -> Iterator[int]:
    """Indexes of the registers of type int<W>. BMv2 JSON gives the signedness of fields, not of registers: a
    field that a register is read into or written from has the register's type.
    """
    for action in model.actions:
        for call in action.body:
            # positions of the field and the register among the arguments; equal for other calls
            field, register = {"register_read": (0, 1), "register_write": (2, 0)}.get(call.op, (0, 0))
            if field != register and _is_signed(model, call.args[field]):
                register_index = call.args[register]
                assert isinstance(register_index, int)
                yield register_index
