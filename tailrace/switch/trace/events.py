# SPDX-License-Identifier: Apache-2.0
"""Events of a trace. In JSON, the `type` of an event is its class name in lower case, without `Event`."""

from __future__ import annotations

from typing import Literal

import msgspec

from tailrace.switch.compiler.model import Source

Stage = Literal["parser", "verify", "ingress", "egress", "update", "deparser"]
"""A stage of the pipeline; checksums are verified in `verify` and computed in `update`."""


def _tag(name: str) -> str:
    return name.removesuffix("Event").lower()


class _Event(msgspec.Struct, frozen=True, tag_field="type", tag=_tag):
    """Base of all events."""


class FieldChange(msgspec.Struct, frozen=True):
    """A change of a field; `$valid$` is the validity of a header.

    `bits` is 0 for a number without a declared width, such as a stack's next index.
    """

    field: str
    bits: int
    before: int
    after: int


class KeyFieldValue(msgspec.Struct, frozen=True):
    """A field of a lookup's key, or of a parser's select."""

    field: str
    bits: int
    value: int


class Argument(msgspec.Struct, frozen=True):
    """An argument of an action, or a field of a digest or of an extracted header."""

    name: str
    bits: int
    value: int


class EnterEvent(_Event, frozen=True):
    """A packet enters ingress on a port. `frame`: its bytes in hexadecimal.

    `virtual_bytes`: further bytes of payload that only count for the length; they are not stored.
    """

    port: int
    frame: str
    virtual_bytes: int = 0


class BeginEvent(_Event, frozen=True):
    """A stage of the pipeline begins.

    changes: what the switch itself changed before, such as standard metadata
    headers: the headers that the deparser emits, in order
    """

    stage: Stage
    changes: tuple[FieldChange, ...] = ()
    headers: tuple[str, ...] = ()


class StateEvent(_Event, frozen=True):
    """The parser enters a state."""

    name: str


class ExtractEvent(_Event, frozen=True):
    """A header is extracted: `length` bytes, from `offset` bytes after the start of the packet."""

    header: str
    offset: int
    length: int
    fields: tuple[Argument, ...]


class SelectEvent(_Event, frozen=True):
    """A parser state selects the next state; `next` is None for `accept`, or if no case matches."""

    key: tuple[KeyFieldValue, ...]
    case: str
    next: str | None


class ParserErrorEvent(_Event, frozen=True):
    """The parser ends with an error."""

    name: str


class TableEvent(_Event, frozen=True):
    """A table lookup; `entry` is the handle of the entry that was hit, or None for a miss."""

    name: str
    match: str
    key: tuple[KeyFieldValue, ...]
    entry: int | None
    place: Source | None = None
    written: str = ""
    """The entry as its controller wrote it, if known."""


class MemberEvent(_Event, frozen=True):
    """An action profile resolves a table entry to a member, either directly or by a group.

    `of`: the size of the group; `position`: the selected member's position in the group, from 0. `written`:
    group and member as the controller wrote them.
    """

    profile: str
    group: int | None
    position: int
    of: int
    member: int | None
    written: str = ""


class ActionEvent(_Event, frozen=True):
    """An action begins."""

    name: str
    arguments: tuple[Argument, ...]
    place: Source | None = None


class StatementEvent(_Event, frozen=True):
    """A statement of the program, and the changes that it makes."""

    text: str
    changes: tuple[FieldChange, ...]
    place: Source | None = None


class ConditionEvent(_Event, frozen=True):
    """An `if` of a control; `name` is its node in the pipeline."""

    name: str
    text: str
    value: bool
    place: Source | None = None


class RegisterEvent(_Event, frozen=True):
    """A register cell is read or written.

    `inside`: whether the index is in range; if not, nothing happens, and a read has no `value`.
    """

    name: str
    access: Literal["read", "write"]
    index: int
    inside: bool
    bits: int
    value: int | None


class CountEvent(_Event, frozen=True):
    """A counter cell counts the packet, unless the index is out of range (not `inside`)."""

    name: str
    index: int
    inside: bool


class MeterEvent(_Event, frozen=True):
    """A meter colours the packet; `index` is None for a direct meter."""

    name: str
    index: int | None
    colour: Literal["green", "yellow", "red"]


class RandomEvent(_Event, frozen=True):
    """A random number is drawn from `low` to `high`, both included."""

    low: int
    high: int
    value: int


class ChecksumEvent(_Event, frozen=True):
    """The checksum in a field is verified or updated; `right`: whether it was correct, true for an update."""

    field: str
    action: Literal["verify", "update"]
    right: bool


class CloneEvent(_Event, frozen=True):
    """The packet is cloned to a clone session; `known`: whether the session exists."""

    session: int
    known: bool


class DigestEvent(_Event, frozen=True):
    """A digest is sent to the control plane."""

    name: str
    fields: tuple[Argument, ...]


class ResubmitEvent(_Event, frozen=True):
    """The packet re-enters ingress as it arrived."""


class RecirculateEvent(_Event, frozen=True):
    """The packet re-enters ingress as it is now."""


class MulticastEvent(_Event, frozen=True):
    """The packet is replicated to a multicast group."""

    group: int
    replicas: int


class CopyEvent(_Event, frozen=True):
    """A copy of the packet is made; `steps` are the copy's events.

    packet: packet number of the copy
    port: its egress port; None for a clone before replication
    instance: the replica's instance (egress_rid)
    """

    packet: int
    port: int | None
    instance: int
    steps: tuple[Event, ...]


class QueueEvent(_Event, frozen=True):
    """The packet joins a queue in which `packets` packets of `bytes` bytes wait."""

    port: int
    priority: int
    packets: int
    bytes: int


class LeaveEvent(_Event, frozen=True):
    """The packet leaves its queue, after `waited_ticks` ticks of the switch's clock."""

    port: int
    priority: int
    waited_ticks: int


class SentEvent(_Event, frozen=True):
    """The packet is sent on a port."""

    port: int
    frame: str
    virtual_bytes: int = 0


class DropEvent(_Event, frozen=True):
    """The packet is dropped; `reason` is one of the switch's drop counters."""

    reason: str


class TextEvent(_Event, frozen=True):
    """A log message of the program or the switch."""

    level: Literal["trace", "info", "warning", "error"]
    text: str


class ChoiceEvent(_Event, frozen=True):
    """A choice that does not depend on the packet alone. `of`: how many outcomes are possible; `taken`: which
    of them happens, from 0.
    """

    what: Literal["member", "colour", "random"]
    of: int
    taken: int


Event = (
    EnterEvent | BeginEvent | StateEvent | ExtractEvent | SelectEvent | ParserErrorEvent | TableEvent
    | MemberEvent | ActionEvent | StatementEvent | ConditionEvent | RegisterEvent | CountEvent | MeterEvent
    | RandomEvent | ChecksumEvent | CloneEvent | DigestEvent | ResubmitEvent | RecirculateEvent
    | MulticastEvent | CopyEvent | QueueEvent | LeaveEvent | SentEvent | DropEvent | TextEvent
    | ChoiceEvent
)  # fmt: skip


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one packet.

    cut: whether the trace is incomplete since it exceeded a limit
    inside: how many packets and copies were still in the switch when the trace ended
    """

    program: str
    steps: tuple[Event, ...]
    cut: bool = False
    inside: int = 0
