# SPDX-License-Identifier: Apache-2.0
"""Traces as protobuf: BMv2's packet_trace.proto, extended by all our events.

A reader of BMv2's traces reads these, and sees stages and the packet's outcome. Extensions have numbers from
16 on. Their messages are the classes of events.py; the number of a field is its position there, so new fields
come last.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Any

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import Message

from tailrace.switch.trace import events

PACKAGE = "p4.bm"
FILE = "packet_trace.proto"
_FIRST = 16
"""The first number of an extension."""

_Kind = descriptor_pb2.FieldDescriptorProto
_STAGES: dict[events.Stage, int] = {
    "parser": 1, "verify": 2, "ingress": 2, "egress": 2, "update": 2, "deparser": 3,
}  # fmt: skip
_ENTER, _EXIT = 1, 2
_WIDE = {"before", "after", "value", "low", "high"}
"""Numbers of any width, as bytes, the most significant first."""

_STEPS = typing.get_args(events.Event)
_ENDS = (events.SentEvent, events.DropEvent)
_OTHER_NAMES: dict[type, str] = {
    events.SourceLine: "Place",
    events.FieldChange: "Change",
    events.KeyFieldValue: "KeyPart",
}
_OF_BMV2 = (events.BeginEvent, *_ENDS)
"""Events with messages of BMv2."""


def message_of(trace: events.Trace) -> Message:
    """A trace as a p4.bm.PacketTrace."""
    classes = _classes()
    message = classes["PacketTrace"](program=trace.program, cut=trace.cut, inside=trace.inside)
    enter = next((step for step in trace.steps if isinstance(step, events.EnterEvent)), None)
    if enter is not None:
        message.input.packet_id, message.input.ingress_port = 1, enter.port
        message.input.frame, message.input.virtual_bytes = bytes.fromhex(enter.frame), enter.virtual_bytes
    _fill_tree(message.root, trace.steps)
    return typing.cast(Message, message)


def text_of(trace: events.Trace) -> str:
    """A trace in protobuf's text format, as BMv2 writes it, with a header."""
    head = f"# proto-file: {FILE}\n# proto-message: {PACKAGE}.PacketTrace\n"
    return head + text_format.MessageToString(message_of(trace), as_utf8=True)


def schema() -> str:
    """The .proto file of the messages."""
    lines = [_HEAD, 'syntax = "proto3";', "", f"package {PACKAGE};"]
    for message in _file().message_type:
        lines += ["", *_message_lines(message, "")]
    return "\n".join(lines) + "\n"


def _fill_tree(tree: Any, steps: Sequence[events.Event]) -> None:
    """Adds a packet's events; a stage ends where the next one begins."""
    stage: events.BeginEvent | None = None
    for step in steps:
        if isinstance(step, (events.BeginEvent, *_ENDS)) and stage is not None:
            _fill_stage(tree.events.add().pipeline_stage, stage, _EXIT)
            stage = None
        if isinstance(step, events.BeginEvent):
            stage = step
            _fill_stage(tree.events.add().pipeline_stage, stage, _ENTER)
        elif isinstance(step, events.SentEvent):
            tree.transmit.egress_port = step.port
            tree.transmit.packet_size = len(step.frame) // 2 + step.virtual_bytes
            tree.transmit.frame = bytes.fromhex(step.frame)
        elif isinstance(step, events.DropEvent):
            tree.drop.reason = step.reason
        else:
            made = getattr(tree.events.add(), _name(type(step)))
            made.SetInParent()
            _fill(made, step)


def _fill_stage(message: Any, step: events.BeginEvent, direction: int) -> None:
    message.stage_name, message.stage_kind, message.direction = step.stage, _STAGES[step.stage], direction
    if direction == _ENTER:
        for change in step.changes:
            _fill(message.changes.add(), change)
        message.headers.extend(step.headers)


def _fill(message: Any, struct: msgspec.Struct) -> None:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is None:
            continue
        if name == "steps":
            _fill_tree(message.steps, value)
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, msgspec.Struct):
                    _fill(getattr(message, name).add(), item)
                else:
                    getattr(message, name).append(item)
        elif isinstance(value, msgspec.Struct):
            _fill(getattr(message, name), value)
        elif name == "frame":
            message.frame = bytes.fromhex(value)
        elif name in _WIDE and not isinstance(value, bool):
            if value < 0:  # of int<bits>: its bits, as in a packet
                value += 1 << getattr(struct, "bits", 0)
            setattr(message, name, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
        else:
            setattr(message, name, value)


# ---- the messages ----


@functools.cache
def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{message.name}"))
        for message in _file().message_type
    }


@functools.cache
def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    trace = file.message_type.add(name="PacketTrace")
    _add(trace, "input", 1, message="InputPacket")
    _add(trace, "root", 2, message="TraceTree")
    _add(trace, "program", _FIRST, _Kind.TYPE_STRING)
    _add(trace, "cut", _FIRST + 1, _Kind.TYPE_BOOL)
    _add(trace, "inside", _FIRST + 2, _Kind.TYPE_UINT64)
    enter = file.message_type.add(name="InputPacket")
    _add(enter, "packet_id", 1, _Kind.TYPE_UINT64)
    _add(enter, "ingress_port", 2, _Kind.TYPE_UINT32)
    _add(enter, "frame", _FIRST, _Kind.TYPE_BYTES)
    _add(enter, "virtual_bytes", _FIRST + 1, _Kind.TYPE_UINT64)
    tree = file.message_type.add(name="TraceTree")
    _add(tree, "events", 1, message="TraceEvent", many=True)
    tree.oneof_decl.add(name="outcome")
    _add(tree, "transmit", 2, message="Transmit", oneof=0)
    _add(tree, "drop", 3, message="Drop", oneof=0)
    event = file.message_type.add(name="TraceEvent")
    event.oneof_decl.add(name="event")
    _add(event, "pipeline_stage", 1, message="PipelineStageEvent", oneof=0)
    stage = file.message_type.add(name="PipelineStageEvent")
    _add(stage, "stage_name", 1, _Kind.TYPE_STRING)
    _enum(stage, "stage_kind", 2, "StageKind", ("PARSER", "CONTROL", "DEPARSER"))
    _enum(stage, "direction", 3, "Direction", ("ENTER", "EXIT"))
    _add(stage, "changes", _FIRST, message="Change", many=True)
    _add(stage, "headers", _FIRST + 1, _Kind.TYPE_STRING, many=True)
    sent = file.message_type.add(name="Transmit")
    _add(sent, "egress_port", 1, _Kind.TYPE_UINT32)
    _add(sent, "packet_size", 2, _Kind.TYPE_UINT32)
    _add(sent, "frame", _FIRST, _Kind.TYPE_BYTES)
    _add(file.message_type.add(name="Drop"), "reason", _FIRST, _Kind.TYPE_STRING)
    for struct in (events.SourceLine, events.FieldChange, events.KeyFieldValue, events.Argument, *_STEPS):
        if struct in _OF_BMV2:
            continue
        made = file.message_type.add(name=_message_name(struct))
        for number, (name, kind) in enumerate(typing.get_type_hints(struct).items(), start=1):
            _add_field(made, name, number, kind)
    for number, struct in enumerate(_STEPS, start=_FIRST):
        if struct not in _OF_BMV2:
            _add(event, _name(struct), number, message=_message_name(struct), oneof=0)
    return file


def _message_name(struct: type) -> str:
    return _OTHER_NAMES.get(struct, struct.__name__.removesuffix("Event"))


def _name(struct: type) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in _message_name(struct)).removeprefix("_")


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: Any) -> None:
    kinds = [k for k in typing.get_args(kind) if k is not NoneType]
    if name == "steps":
        _add(message, name, number, message="TraceTree")
    elif typing.get_origin(kind) is tuple:
        _add_one(message, name, number, kinds[0], many=True)
    elif isinstance(kind, UnionType):
        _add_one(message, name, number, kinds[0], optional=True)
    else:
        _add_one(message, name, number, kind)


def _add_one(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: Any,
    *,
    many: bool = False,
    optional: bool = False,
) -> None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _add(message, name, number, message=_message_name(kind), many=many)
    elif kind is bool:
        _add(message, name, number, _Kind.TYPE_BOOL)
    elif kind is int:
        wide = name in _WIDE
        _add(message, name, number, _Kind.TYPE_BYTES if wide else _Kind.TYPE_UINT64, optional=optional)
    else:
        text = _Kind.TYPE_BYTES if name == "frame" else _Kind.TYPE_STRING
        _add(message, name, number, text, many=many, optional=optional)


def _add(
    to: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: Any = _Kind.TYPE_MESSAGE,
    *,
    message: str = "",
    many: bool = False,
    optional: bool = False,
    oneof: int | None = None,
) -> None:
    field = to.field.add(name=name, number=number, type=kind)
    field.label = _Kind.LABEL_REPEATED if many else _Kind.LABEL_OPTIONAL
    if message:
        field.type_name = f".{PACKAGE}.{message}"
    if oneof is not None:
        field.oneof_index = oneof
    elif optional:
        field.proto3_optional = True
        field.oneof_index = len(to.oneof_decl)
        to.oneof_decl.add(name=f"_{name}")


def _enum(
    to: descriptor_pb2.DescriptorProto, name: str, number: int, enum: str, values: Sequence[str]
) -> None:
    made = to.enum_type.add(name=enum)
    made.value.add(name=f"{_name_upper(enum)}_UNSPECIFIED", number=0)
    for at, value in enumerate(values, start=1):
        made.value.add(name=value, number=at)
    field = to.field.add(name=name, number=number, type=_Kind.TYPE_ENUM, label=_Kind.LABEL_OPTIONAL)
    field.type_name = f".{PACKAGE}.{to.name}.{enum}"


def _name_upper(enum: str) -> str:
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in enum).removeprefix("_")


# ---- as a file ----

_HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// What `tailrace trace --proto` writes: BMv2's packet traces, with its names and numbers, and from 16 on all
// that this switch has beside it. Written by `make docs` of tailrace/switch/trace/proto.py, and so are the
// meanings: its messages are the classes of events.py.
"""
_TYPE_NAMES = {
    _Kind.TYPE_STRING: "string", _Kind.TYPE_BYTES: "bytes", _Kind.TYPE_BOOL: "bool",
    _Kind.TYPE_UINT32: "uint32", _Kind.TYPE_UINT64: "uint64",
}  # fmt: skip


def _message_lines(message: descriptor_pb2.DescriptorProto, indent: str) -> Iterator[str]:
    yield f"{indent}message {message.name} {{"
    for enum in message.enum_type:
        yield f"{indent}  enum {enum.name} {{"
        yield from (f"{indent}    {value.name} = {value.number};" for value in enum.value)
        yield f"{indent}  }}"
    grouped: dict[int, list[str]] = {}
    for field in message.field:
        kind = field.type_name.rpartition(".")[2] or _TYPE_NAMES[field.type]
        line = f"{kind} {field.name} = {field.number};"
        if field.proto3_optional:
            yield f"{indent}  optional {line}"
        elif field.HasField("oneof_index"):
            grouped.setdefault(field.oneof_index, []).append(line)
        else:
            yield f"{indent}  {'repeated ' if field.label == _Kind.LABEL_REPEATED else ''}{line}"
    for index, lines in grouped.items():
        yield f"{indent}  oneof {message.oneof_decl[index].name} {{"
        yield from (f"{indent}    {line}" for line in lines)
        yield f"{indent}  }}"
    yield f"{indent}}}"


if __name__ == "__main__":
    sys.stdout.write(schema())
