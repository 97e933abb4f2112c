# SPDX-License-Identifier: Apache-2.0
"""P4Runtime entities by name, as in a saved trace.

Octets are texts in base 16 that begin with `0x`; a value of type bit<W> is a number, most significant octet
first. A match field without a name, as of most value sets, is called by its id.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Octets = Annotated[
    str,
    Meta(
        pattern=r"^0x([0-9a-f]{2}){1,512}$",
        description='octets in base 16, such as "0x0a00", at most 512 of them',
    ),
]
Name = Annotated[
    str, Meta(min_length=1, max_length=512, description="a name of P4Info, of at most 512 characters")
]
Id = Annotated[int, Meta(ge=0, lt=1 << 32, description="a number of 32 bits")]
Size = Annotated[int, Meta(ge=0, lt=1 << 31, description="a whole number below 2^31")]
Rate = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="a whole number below 2^63")]


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all."""


class MatchValue(_Struct, frozen=True, omit_defaults=True):
    """A field of a key: `value` alone, with `prefix` bits, or with a `mask`; or from `low` to `high`."""

    value: Octets | None = None
    mask: Octets | None = None
    prefix: Size | None = None
    low: Octets | None = None
    high: Octets | None = None


Key = dict[Name, MatchValue]


class ActionInvocation(_Struct, frozen=True):
    """An action with its arguments by name."""

    action: Name
    arguments: dict[Name, Octets] = {}


class WeightedAction(_Struct, frozen=True):
    """An action of a one-shot action set; `weight` 0 where the program allows none."""

    call: ActionInvocation
    weight: Size = 0


class MeterConfig(_Struct, frozen=True, omit_defaults=True):
    """Rates of a meter in units/s, bursts in units."""

    cir: Rate
    cburst: Rate
    pir: Rate
    pburst: Rate
    eburst: Rate = 0


class ReplicaPort(_Struct, frozen=True):
    """A copy that the replication engine makes."""

    port: Id
    instance: Id = 0


class _Entity(_Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """Base of the entities."""


class MemberEntity(_Entity, frozen=True, tag="member"):
    """A member of an action profile."""

    profile: Name
    id: Id
    call: ActionInvocation


class GroupMember(_Struct, frozen=True):
    """A member of a group; `weight` 0 where the program allows none."""

    member: Id
    weight: Size = 0


class GroupEntity(_Entity, frozen=True, tag="group"):
    """A group of members; max_size 0: what P4Info says."""

    profile: Name
    id: Id
    members: tuple[GroupMember, ...]
    max_size: Size = 0


class TableEntity(_Entity, frozen=True, tag="entry"):
    """A table entry, or with `default` its default action. Its action is one of `call`, `member`, `group` and
    `one_of`, a one-shot action set.

    first: an action before that of `one_of`
    """

    table: Name
    key: Key = {}
    priority: Size = 0
    default: bool = False
    call: ActionInvocation | None = None
    member: Id | None = None
    group: Id | None = None
    one_of: tuple[WeightedAction, ...] | None = None
    first: ActionInvocation | None = None
    meter: MeterConfig | None = None


class MulticastEntity(_Entity, frozen=True, tag="multicast"):
    """A multicast group."""

    group: Id
    replicas: tuple[ReplicaPort, ...]


class CloneEntity(_Entity, frozen=True, tag="clone"):
    """A clone session; truncate_bytes 0: no truncation."""

    session: Id
    replicas: tuple[ReplicaPort, ...]
    class_of_service: Size = 0
    truncate_bytes: Size = 0


class RegisterEntity(_Entity, frozen=True, tag="register"):
    """A cell of a register."""

    register: Name
    index: Size
    value: Octets


class MeterEntity(_Entity, frozen=True, tag="meter"):
    """A cell of a meter."""

    meter: Name
    index: Size
    rates: MeterConfig


class ValueSetEntity(_Entity, frozen=True, tag="value_set"):
    """All members of a parser value set."""

    value_set: Name
    members: tuple[Key, ...]


Entity = (
    MemberEntity | GroupEntity | TableEntity | MulticastEntity | CloneEntity | RegisterEntity | MeterEntity
    | ValueSetEntity
)  # fmt: skip
"""Any entity."""

ORDER = (
    MemberEntity, GroupEntity, ValueSetEntity, MulticastEntity, CloneEntity, RegisterEntity, MeterEntity,
    TableEntity,
)  # fmt: skip
"""The order in which entities can be written."""
