# SPDX-License-Identifier: Apache-2.0
"""Traces in protobuf's text format: BMv2's packet_trace.proto, extended by all events of events.py.

Programs that read BMv2's traces can read these traces: they get the stages and the packet's outcome. The
schema is docs/switch/packet_trace.proto: each event class of events.py has a message with the same fields.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType

import msgspec
from google.protobuf.text_encoding import CEscape

from tailrace.switch.trace import events

_HEAD = "# proto-file: packet_trace.proto\n# proto-message: p4.bm.PacketTrace\n"
_STAGE_KINDS: dict[events.Stage, str] = {"parser": "PARSER", "deparser": "DEPARSER"}
_AS_BYTES = {"before", "after", "value", "low", "high"}
"""Fields with numbers of any width; in the schema they are bytes, the most significant first."""

Lines = Iterator[str]


def text_of(trace: events.Trace) -> str:
    """A p4.bm.PacketTrace as BMv2 writes it, with the comments that name schema and message."""
    return _HEAD + "".join(f"{line}\n" for line in _trace(trace))


def _trace(trace: events.Trace) -> Lines:
    enter = next((step for step in trace.steps if isinstance(step, events.EnterEvent)), None)
    if enter is not None:
        yield from _message(
            "input",
            _scalars(
                packet_id=1, ingress_port=enter.port, frame=enter.frame, virtual_bytes=enter.virtual_bytes
            ),
        )
    if trace.steps:
        yield from _message("root", _packet_events(trace.steps))
    yield from _scalars(program=trace.program, cut=trace.cut, inside=trace.inside)


def _packet_events(steps: Sequence[events.Event]) -> Lines:
    """A packet's events, then its outcome; a stage ends where the next one begins."""
    stage: events.BeginEvent | None = None
    outcome: list[str] = []
    for step in steps:
        ends = isinstance(step, events.SentEvent | events.DropEvent)
        if stage is not None and (ends or isinstance(step, events.BeginEvent)):
            yield from _event("pipeline_stage", _stage(stage, "EXIT"))
            stage = None
        if isinstance(step, events.BeginEvent):
            stage = step
            yield from _event("pipeline_stage", _stage(stage, "ENTER"))
        elif isinstance(step, events.SentEvent):
            size = len(step.frame) // 2 + step.virtual_bytes
            fields = _scalars(egress_port=step.port, packet_size=size, frame=step.frame)
            outcome = list(_message("transmit", fields))
        elif isinstance(step, events.DropEvent):
            outcome = list(_message("drop", _scalars(reason=step.reason)))
        else:
            yield from _event(_name(type(step)), _fields(step))
    yield from outcome


def _event(name: str, fields: Iterable[str]) -> Lines:
    return _message("events", _message(name, fields))


def _stage(step: events.BeginEvent, direction: str) -> Lines:
    yield from _scalars(stage_name=step.stage)
    yield f"stage_kind: {_STAGE_KINDS.get(step.stage, 'CONTROL')}"
    yield f"direction: {direction}"
    if direction == "ENTER":
        for change in step.changes:
            yield from _message("changes", _fields(change))
        for header in step.headers:
            yield _scalar("headers", header)


def _fields(struct: msgspec.Struct) -> Lines:
    """The fields of a struct; nested structs become nested messages."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if name == "steps":
            if value:
                yield from _message(name, _packet_events(value))
        elif isinstance(value, tuple | msgspec.Struct):
            for item in value if isinstance(value, tuple) else (value,):
                yield from _message(name, _fields(item))
        elif name in _AS_BYTES and type(value) is int:
            if value < 0:  # an int<bits>: written in two's complement, as in a packet
                value += 1 << getattr(struct, "bits", 0)
            yield _scalar(name, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
        elif value or (value is not None and name in _with_presence(type(struct))):
            yield _scalar(name, value)


def _message(name: str, fields: Iterable[str]) -> Lines:
    yield f"{name} {{"
    yield from (f"  {line}" for line in fields)
    yield "}"


def _scalars(**values: object) -> Lines:
    """Fields without presence: proto3 does not write those with default values."""
    return (_scalar(name, value) for name, value in values.items() if value)


def _scalar(name: str, value: object) -> str:
    if name == "frame":
        value = bytes.fromhex(str(value))
    if isinstance(value, bytes):
        return f'{name}: "{CEscape(value, as_utf8=False)}"'
    if isinstance(value, str):
        return f'{name}: "{CEscape(value, as_utf8=True)}"'  # type: ignore[arg-type]  # the stub lacks str
    return f"{name}: {str(value).lower()}"


@functools.cache
def _name(event: type) -> str:
    """The field name of an event class: parser_error for ParserErrorEvent."""
    name = event.__name__.removesuffix("Event")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


@functools.cache
def _with_presence(struct: type) -> frozenset[str]:
    """The fields of a struct that can be None, which have presence."""
    hints = typing.get_type_hints(struct)
    return frozenset(name for name, kind in hints.items() if NoneType in typing.get_args(kind))
