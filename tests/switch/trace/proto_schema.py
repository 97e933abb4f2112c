# SPDX-License-Identifier: Apache-2.0
"""The messages of docs/switch/packet_trace.proto: what protoc would make of it, for its few forms."""

from __future__ import annotations

import functools
import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.test_readme import ROOT

PAGE = ROOT / "docs" / "switch" / "packet_trace.proto"
_FIELD = re.compile(r"(?:(repeated|optional) )?(\w+) (\w+) = (\d+);")
_Kind = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Kind.TYPE_STRING, "bytes": _Kind.TYPE_BYTES, "bool": _Kind.TYPE_BOOL,
    "uint32": _Kind.TYPE_UINT32, "uint64": _Kind.TYPE_UINT64,
}  # fmt: skip


@functools.cache
def packet_trace() -> Any:
    """The class of PacketTrace."""
    file = descriptor_pb2.FileDescriptorProto(name="packet_trace.proto", package="p4.bm", syntax="proto3")
    message: Any = None
    enum: Any = None
    oneof, in_oneof = 0, False
    for line in map(str.strip, PAGE.read_text("utf-8").splitlines()):
        words = line.rstrip(" {").split()
        if line.startswith("message "):
            message = file.message_type.add(name=words[1])
        elif line.startswith("enum "):
            enum = message.enum_type.add(name=words[1])
        elif line.startswith("oneof "):
            message.oneof_decl.add(name=words[1])
            oneof = len(message.oneof_decl) - 1
            in_oneof = True
        elif line == "}":
            enum, in_oneof = None, False
        elif enum is not None:
            name, _, number = line.rstrip(";").split()
            enum.value.add(name=name, number=int(number))
        elif match := _FIELD.fullmatch(line):
            _add(message, *match.groups(), oneof=oneof if in_oneof else None)
        else:
            assert not line or line.startswith(("//", "syntax", "package")), line
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.bm.PacketTrace"))


def _add(message: Any, label: str | None, kind: str, name: str, number: str, *, oneof: int | None) -> None:
    field = message.field.add(name=name, number=int(number))
    field.label = _Kind.LABEL_REPEATED if label == "repeated" else _Kind.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    elif kind in {enum.name for enum in message.enum_type}:
        field.type, field.type_name = _Kind.TYPE_ENUM, f".p4.bm.{message.name}.{kind}"
    else:
        field.type, field.type_name = _Kind.TYPE_MESSAGE, f".p4.bm.{kind}"
    if label == "optional":
        field.proto3_optional = True
        message.oneof_decl.add(name=f"_{name}")
        oneof = len(message.oneof_decl) - 1
    if oneof is not None:
        field.oneof_index = oneof
