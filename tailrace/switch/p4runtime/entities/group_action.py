# SPDX-License-Identifier: Apache-2.0
"""ActionProfileActionSet.group_action: an action that runs before the selected member's action.

It was added after P4Runtime 1.5.0 (9.2.3), so it is an unknown field in the message classes of 1.5.0.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import invalid

NUMBER = 5
"""The field number."""


def _message_with_the_field() -> Any:
    """A message class with this field alone."""
    action = p4r.Action.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="tailrace/group_action.proto", package="tailrace", syntax="proto3", dependency=[action.file.name]
    )
    field = file.message_type.add(name="GroupActionSet").field.add(name="group_action", number=NUMBER)
    field.type, field.label = field.TYPE_MESSAGE, field.LABEL_OPTIONAL
    field.type_name = f".{action.full_name}"
    pool = action.file.pool
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tailrace.GroupActionSet"))


_GroupActionSet = _message_with_the_field()


def read_group_action(message: p4r.ActionProfileActionSet, what: str) -> p4r.Action | None:
    """The group_action of a message; None: it has none.

    Raises:
        P4RtError: INVALID_ARGUMENT: the field is not an Action message.
    """
    try:
        action_set = _GroupActionSet.FromString(message.SerializeToString())
    except DecodeError:
        raise invalid(f"{what}: group_action (field {NUMBER}) is not an Action message") from None
    unknown_fields = UnknownFieldSet(action_set)
    if any(unknown_fields[i].field_number == NUMBER for i in range(len(unknown_fields))):
        raise invalid(f"{what}: group_action (field {NUMBER}) is not a message")
    action: p4r.Action = action_set.group_action
    return action if action_set.HasField("group_action") else None


def write_group_action(action: p4r.Action, message: p4r.ActionProfileActionSet) -> None:
    """Writes a group_action into a message that has none."""
    alone = _GroupActionSet()
    alone.group_action.CopyFrom(action)
    message.MergeFromString(alone.SerializeToString())
