# SPDX-License-Identifier: Apache-2.0
"""Events of a trace. As JSON each is an object whose `type` is its class, in lower case without `Event`."""

from __future__ import annotations

from typing import Literal

import msgspec

Stage = Literal["parser", "verify", "ingress", "egress", "update", "deparser"]


def _tag(name: str) -> str:
    return name.removesuffix("Event").lower()


class _Event(msgspec.Struct, frozen=True, tag_field="type", tag=_tag):
    """Base of all events."""


class SourceLine(msgspec.Struct, frozen=True):
    """A line of the P4 program."""

    file: str
    line: int


class FieldChange(msgspec.Struct, frozen=True):
    """A field that has another value now; a header's `$valid$` says whether it is there.

    `bits` 0: a number that the program does not declare, as of a stack's elements.
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
    """An argument of an action, a field of a digest."""

    name: str
    bits: int
    value: int


class EnterEvent(_Event, frozen=True):
    """A packet enters ingress by a port: its bytes in base 16, and how many more are a length only."""

    port: int
    frame: str
    virtual_bytes: int = 0


class BeginEvent(_Event, frozen=True):
    """A stage of the pipeline begins; what the switch itself has written since the one before.

    `headers`: those that the deparser writes, in their order.
    """

    stage: Stage
    changes: tuple[FieldChange, ...] = ()
    headers: tuple[str, ...] = ()


class StateEvent(_Event, frozen=True):
    """The parser comes to a state."""

    name: str


class ExtractEvent(_Event, frozen=True):
    """A header is taken from the packet, `offset` bytes from its begin."""

    header: str
    offset: int
    length: int
    fields: tuple[Argument, ...]


class SelectEvent(_Event, frozen=True):
    """A parser state chooses the next one; None: `accept`, or the end where no case fits."""

    key: tuple[KeyFieldValue, ...]
    case: str
    next: str | None


class ParserErrorEvent(_Event, frozen=True):
    """The parser has ended with an error."""

    name: str


class TableEvent(_Event, frozen=True):
    """A lookup; `entry` is the handle of the one that was hit, None: a miss."""

    name: str
    match: str
    key: tuple[KeyFieldValue, ...]
    entry: int | None
    place: SourceLine | None = None
    written: str = ""
    """The entry as it was written by its controller, where that is known."""


class MemberEvent(_Event, frozen=True):
    """An entry's action comes from an action profile: `member` of so many in a group, or alone."""

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
    place: SourceLine | None = None


class StatementEvent(_Event, frozen=True):
    """A statement of the program, and what it has changed."""

    text: str
    changes: tuple[FieldChange, ...]
    place: SourceLine | None = None


class ConditionEvent(_Event, frozen=True):
    """An `if` of a control, the node `name` of its pipeline."""

    name: str
    text: str
    value: bool
    place: SourceLine | None = None


class RegisterEvent(_Event, frozen=True):
    """A cell of a register is read or written; outside nothing happens, and a read has no `value`."""

    name: str
    access: Literal["read", "write"]
    index: int
    inside: bool
    bits: int
    value: int | None


class CountEvent(_Event, frozen=True):
    """A cell of a counter counts the packet."""

    name: str
    index: int
    inside: bool


class MeterEvent(_Event, frozen=True):
    """A meter has coloured the packet; `index` None: the entry's own meter."""

    name: str
    index: int | None
    colour: Literal["green", "yellow", "red"]


class RandomEvent(_Event, frozen=True):
    """The program has drawn a number from low to high, both included."""

    low: int
    high: int
    value: int


class ChecksumEvent(_Event, frozen=True):
    """A checksum of a field is verified or updated."""

    field: str
    action: Literal["verify", "update"]
    right: bool


class CloneEvent(_Event, frozen=True):
    """The packet is cloned to a session."""

    session: int
    known: bool


class DigestEvent(_Event, frozen=True):
    """Fields are sent to the control plane."""

    name: str
    fields: tuple[Argument, ...]


class ResubmitEvent(_Event, frozen=True):
    """The packet goes back to the begin of ingress, as it came in."""


class RecirculateEvent(_Event, frozen=True):
    """The packet goes back to the begin of ingress, as it has become."""


class MulticastEvent(_Event, frozen=True):
    """The packet is replicated to a group."""

    group: int
    replicas: int


class CopyEvent(_Event, frozen=True):
    """A copy of the packet is made, whose steps follow; `port` None: a clone before it is replicated."""

    packet: int
    port: int | None
    instance: int
    steps: tuple[Event, ...]


class QueueEvent(_Event, frozen=True):
    """The packet comes to a queue, in which so many packets and bytes wait."""

    port: int
    priority: int
    packets: int
    bytes: int


class LeaveEvent(_Event, frozen=True):
    """The packet leaves its queue, after so many ticks of the switch."""

    port: int
    priority: int
    waited_ticks: int


class SentEvent(_Event, frozen=True):
    """The packet leaves the switch."""

    port: int
    frame: str
    virtual_bytes: int = 0


class DropEvent(_Event, frozen=True):
    """The packet ends here; `reason` is one of the switch's counts of drops."""

    reason: str


class TextEvent(_Event, frozen=True):
    """A text of the program's log_msg, or of the switch."""

    level: Literal["trace", "info", "warning", "error"]
    text: str


class ChoiceEvent(_Event, frozen=True):
    """Here the packet's way depends on more than the packet: outcome `taken` of so many."""

    what: Literal["member", "colour", "random"]
    of: int
    taken: int


Event = (
    EnterEvent
    | BeginEvent
    | StateEvent
    | ExtractEvent
    | SelectEvent
    | ParserErrorEvent
    | TableEvent
    | MemberEvent
    | ActionEvent
    | StatementEvent
    | ConditionEvent
    | RegisterEvent
    | CountEvent
    | MeterEvent
    | RandomEvent
    | ChecksumEvent
    | CloneEvent
    | DigestEvent
    | ResubmitEvent
    | RecirculateEvent
    | MulticastEvent
    | CopyEvent
    | QueueEvent
    | LeaveEvent
    | SentEvent
    | DropEvent
    | TextEvent
    | ChoiceEvent
)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """All that happens to one packet.

    cut: it was more than there was room for
    inside: of it and its copies so many were in the switch still when the trace ended
    """

    program: str
    steps: tuple[Event, ...]
    cut: bool = False
    inside: int = 0
