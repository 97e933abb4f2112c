# SPDX-License-Identifier: Apache-2.0
"""The messages of BMv2's gRPC data plane; no package provides their Python classes.

Source: behavioral-model services/p4/bm/dataplane_interface.proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "p4.bm.DataplaneInterface"
STREAM, SET_STATUS = "PacketStream", "SetPortOperStatus"

DOWN, UP = 1, 2
"""Values of the enum PortOperStatus; 0: unknown."""

_Kind = descriptor_pb2.FieldDescriptorProto
_PACKET = (
    ("id", _Kind.TYPE_UINT64),
    ("device_id", _Kind.TYPE_UINT64),
    ("port", _Kind.TYPE_UINT32),
    ("packet", _Kind.TYPE_BYTES),
)
_MESSAGES = {
    "PacketStreamRequest": _PACKET,
    "PacketStreamResponse": _PACKET,
    "SetPortOperStatusRequest": (
        ("device_id", _Kind.TYPE_UINT64),
        ("port", _Kind.TYPE_UINT32),
        # an enum, whose encoding is the same
        ("oper_status", _Kind.TYPE_INT32),
    ),
    "SetPortOperStatusResponse": (),
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="dataplane_interface.proto", package="p4.bm", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, start=1):
            message.field.add(name=field, number=number, type=kind, label=_Kind.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    messages = pool.FindFileByName(file.name).message_types_by_name
    return {name: message_factory.GetMessageClass(messages[name]) for name in _MESSAGES}


_CLASSES = _classes()
Packet: Any = _CLASSES["PacketStreamRequest"]
"""A packet to a port or from a port: id, device_id, port, packet."""
PortStatus: Any = _CLASSES["SetPortOperStatusRequest"]
PortStatusSet: Any = _CLASSES["SetPortOperStatusResponse"]
