# SPDX-License-Identifier: Apache-2.0
"""Messages of BMv2 of which no package provides the Python classes.

Sources: behavioral-model services/p4/bm/dataplane_interface.proto for the gRPC data plane; p4lang/PI
proto/p4/tmp/p4config.proto for P4DeviceConfig.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "p4.bm.DataplaneInterface"
STREAM, SET_STATUS = "PacketStream", "SetPortOperStatus"

DOWN, UP = 1, 2
"""Values of the enum PortOperStatus; 0: unknown."""

_Kind = descriptor_pb2.FieldDescriptorProto


def _message(name: str, **fields: _Kind.Type.ValueType) -> Any:
    """The class of a message whose fields have the numbers 1, 2, ….

    Messages and enums in it are declared as bytes and int32, which have the same encoding.
    """
    package, _, short = name.rpartition(".")
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    message = file.message_type.add(name=short)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        message.field.add(name=field, number=number, type=kind, label=_Kind.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Packet = _message(
    "p4.bm.PacketStreamRequest",
    id=_Kind.TYPE_UINT64,
    device_id=_Kind.TYPE_UINT64,
    port=_Kind.TYPE_UINT32,
    packet=_Kind.TYPE_BYTES,
)
"""A packet to a port or from a port; PacketStreamResponse has the same fields."""
PortStatus = _message(
    "p4.bm.SetPortOperStatusRequest",
    device_id=_Kind.TYPE_UINT64,
    port=_Kind.TYPE_UINT32,
    oper_status=_Kind.TYPE_INT32,
)
PortStatusSet = _message("p4.bm.SetPortOperStatusResponse")
DeviceConfig = _message(
    "p4.tmp.P4DeviceConfig", reassign=_Kind.TYPE_BOOL, extras=_Kind.TYPE_BYTES, device_data=_Kind.TYPE_BYTES
)
"""A p4_device_config; `device_data` has the BMv2 JSON."""
