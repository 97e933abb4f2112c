# SPDX-License-Identifier: Apache-2.0
"""Members, groups and one-shot action sets: targets of entries of indirect tables (with action profile).

While the watch port of a member is down, its group does not select the member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar

import msgspec
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import invalid
from tailrace.switch.core import GroupRef, MemberRef
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.entities.actions import ActionSpec


class WatchPort(msgspec.Struct, frozen=True):
    """The watch port of a member; `in_message`: the value of `watch` or `watch_port` in the message."""

    port: int | None = None
    in_message: int | bytes | None = None

    def fill(self, message: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> None:
        """Writes the watch port into a message."""
        if isinstance(self.in_message, bytes):
            message.watch_port = self.in_message
        elif self.in_message is not None:
            message.watch = self.in_message


class WeightedMember(msgspec.Struct, frozen=True):
    """The weight (0: the program allows no weights) and watch port of a member in a group."""

    weight: int
    watch: WatchPort

    @property
    def copies(self) -> int:
        """How many copies of the member the data plane's group has."""
        return self.weight or 1


class StoredMember(msgspec.Struct):
    """A member.

    handles: its copies in the core
    group_counts: for each number of copies, how many groups contain so many copies of the member
    references: number of table entries that refer to it
    """

    action: ActionSpec
    handles: list[int]
    group_counts: Counter[int] = msgspec.field(default_factory=Counter)
    references: int = 0


class StoredGroup(msgspec.Struct):
    """A group; `members` by id in ascending order, as in p4lang/PI."""

    handle: int
    max_size: int
    members: dict[int, WeightedMember] = msgspec.field(default_factory=dict)
    references: int = 0


class IndirectSpec(ABC):
    """The target of an entry of an indirect table; `handle` is valid while an entry uses the target."""

    kind: ClassVar[type[MemberRef] | type[GroupRef]] = GroupRef
    handle = -1

    def reference(self) -> MemberRef | GroupRef:
        """The target in the switch core."""
        return self.kind(self.handle)

    @abstractmethod
    def fill(self, action: p4r.TableAction) -> None:
        """Writes the target into an empty message."""


class MemberSpec(IndirectSpec):
    """A member, by id."""

    kind = MemberRef

    def __init__(self, member_id: int) -> None:
        self.member_id = member_id

    def fill(self, action: p4r.TableAction) -> None:
        action.action_profile_member_id = self.member_id


class GroupSpec(IndirectSpec):
    """A group, by id."""

    def __init__(self, group_id: int) -> None:
        self.group_id = group_id

    def fill(self, action: p4r.TableAction) -> None:
        action.action_profile_group_id = self.group_id


class OneShotSpec(IndirectSpec):
    """The weighted actions of one entry, and their group in the core.

    `size`: number of actions or sum of weights, by size_semantics.
    `handles`: the copies of each action in the core.
    """

    def __init__(
        self,
        message: p4r.ActionProfileActionSet,
        actions: list[tuple[ActionSpec, WeightedMember]],
        group_action: ActionSpec | None,
        size: int,
    ) -> None:
        self.mode = message.action_selection_mode
        self.semantics = message.size_semantics
        self.actions = actions
        self.group_action = group_action
        self.size = size
        self.handles: list[list[int]] = []
        self.bytes = memory.GROUP + memory.GROUP_MEMBER * len(actions)
        if group_action is not None:
            self.bytes += memory.MEMBER

    def fill(self, action: p4r.TableAction) -> None:
        action_set = action.action_profile_action_set
        action_set.SetInParent()
        action_set.action_selection_mode = self.mode
        action_set.size_semantics = self.semantics
        for spec, weighted in self.actions:
            item = action_set.action_profile_actions.add()
            spec.fill_action(item.action)
            item.weight = weighted.weight
            weighted.watch.fill(item)
        if self.group_action is not None:
            message = p4r.Action()
            self.group_action.fill_action(message)
            write_group_action(message, action_set)


_GROUP_ACTION = 5
"""The number of the field ActionProfileActionSet.group_action: an action that runs before that of the
selected member. It was added after P4Runtime 1.5.0 (9.2.3), so it is an unknown field in messages of 1.5.0.
"""


def _message_with_the_field() -> Any:
    """A message class with this field alone."""
    action = p4r.Action.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="tailrace/group_action.proto", package="tailrace", syntax="proto3", dependency=[action.file.name]
    )
    field = file.message_type.add(name="GroupActionSet").field.add(name="group_action", number=_GROUP_ACTION)
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
        raise invalid(f"{what}: group_action (field {_GROUP_ACTION}) is not an Action message") from None
    unknown_fields = UnknownFieldSet(action_set)
    if any(unknown_fields[i].field_number == _GROUP_ACTION for i in range(len(unknown_fields))):
        raise invalid(f"{what}: group_action (field {_GROUP_ACTION}) is not a message")
    action: p4r.Action = action_set.group_action
    return action if action_set.HasField("group_action") else None


def write_group_action(action: p4r.Action, message: p4r.ActionProfileActionSet) -> None:
    """Writes a group_action into a message that has none."""
    alone = _GroupActionSet()
    alone.group_action.CopyFrom(action)
    message.MergeFromString(alone.SerializeToString())
