# SPDX-License-Identifier: Apache-2.0
"""Saved traces: JSON files with a program, a packet, its read set as a WriteRequest, and its outcome.

The read set contains the entities that the packet used (switch/p4runtime/read_set.py). A file is validated
completely when it is read. docs/switch/replay.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from msgspec import Meta

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.programs import parse_p4info
from tailrace.p4rt.requests import TraceNeeds, parse_write_request
from tailrace.p4rt.status import P4RtError
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.schema import read_json
from tailrace.spec.text import one_line
from tailrace.switch.core.lib import C
from tailrace.switch.p4runtime.pipeline import program_json
from tailrace.switch.trace import Trace, events

MOST_BYTES = 16 << 20
"""Largest size of a file."""

MOST_UPDATES = 10_000
"""Most updates in the WriteRequest."""

_ONLY_MODIFIED = ("register_entry", "meter_entry", "value_set_entry")
"""Kinds of entities that always exist, so that they are written by MODIFY."""

# \Z: `$` would also match before a final line feed, and the line feed would split a line of an exported test
_Frame = Annotated[
    str,
    Meta(
        pattern=rf"^([0-9a-f]{{2}}){{0,{C.TR_MAX_FRAME}}}\Z",
        description=f"a frame in base 16, of at most {C.TR_MAX_FRAME} bytes",
    ),
]
_Port = Annotated[int, Meta(ge=0, lt=C.TR_MAX_PORTS, description=f"a port below {C.TR_MAX_PORTS}")]
_Id = Annotated[int, Meta(ge=0, lt=1 << 32, description="a number of 32 bits")]
_Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="a whole number below 2^63")]
_DropReason = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9 _-]{0,63}\Z", description="a reason of lower-case letters")
]
Unsure = Literal["time", "queue", "random", "meter", "selection"]
"""A reason why the outcome may differ on another switch: what it depends on besides packet and entities."""


class _DocumentPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all parts of a document."""


class SavedProgram(_DocumentPart, frozen=True):
    """The program: its name, BMv2 JSON, and P4Info in protobuf's text format."""

    name: Annotated[
        str,
        Meta(pattern=r"^[^\ud800-\udfff]{0,512}\Z", description="a string of at most 512 Unicode characters"),
    ]
    json: str
    p4info: str


class SwitchSettings(_DocumentPart, frozen=True):
    """Settings of the switch: special ports, priority queues per port, time and clock tick in ns."""

    cpu_port: _Port | None
    drop_port: _Id
    priority_queues: Annotated[
        int, Meta(ge=1, le=C.TR_MAX_PRIORITIES, description=f"a number from 1 to {C.TR_MAX_PRIORITIES}")
    ]
    time_ns: _Number
    tick_ns: Annotated[int, Meta(ge=1, lt=1 << 31, description="a whole number from 1 on, below 2^31")]


class Frame(_DocumentPart, frozen=True):
    """A frame that enters or leaves by a port."""

    port: _Port
    frame: _Frame

    @property
    def data(self) -> bytes:
        """The bytes of the frame."""
        return bytes.fromhex(self.frame)


class TraceOutcome(_DocumentPart, frozen=True):
    """Outcome of the packet and its copies: the frames sent and the reasons of drops, in order."""

    sent: tuple[Frame, ...]
    dropped: tuple[_DropReason, ...]


class TraceDocument(_DocumentPart, frozen=True, kw_only=True):
    """A saved trace.

    write_request: writes the read set to a fresh switch, in protobuf's text format
    choices: the outcomes of random numbers, meter colours and group selections, as in switch.trace.dry_run
    unsure: reasons why the outcome may differ on another switch
    """

    format: Literal["tailrace trace"]
    version: Literal[1]
    program: SavedProgram
    switch: SwitchSettings
    packet: Frame
    write_request: str
    choices: Annotated[
        tuple[_Number, ...], Meta(max_length=4096, description="a list of at most 4096 numbers below 2^63")
    ]
    expected: TraceOutcome
    unsure: tuple[Unsure, ...]


class SavedTrace:
    """A valid document with its program's parsed `json` and `p4info`, and its WriteRequest's updates."""

    def __init__(self, document: TraceDocument) -> None:
        """Raises SpecError, whose message begins with the key of the invalid value."""
        self.document = document
        self.json = _octets(document.program.json)
        try:
            self.p4info = parse_p4info(_octets(document.program.p4info))
        except ValueError as error:
            raise SpecError(f"program.p4info: {error}") from None
        try:
            self.updates = parse_write_request(document.write_request).updates
        except SpecError as error:
            raise SpecError(f"write_request: {error}") from None
        if len(self.updates) > MOST_UPDATES:
            raise SpecError(f"write_request: {len(self.updates)} updates; the limit is {MOST_UPDATES}")

    @property
    def json_sha256(self) -> str:
        """SHA-256 of the BMv2 JSON, in hexadecimal."""
        return hashlib.sha256(self.json).hexdigest()


def document_of(trace: Trace, needs: TraceNeeds, config: p4r.ForwardingPipelineConfig) -> TraceDocument:
    """The document of a trace and its read set.

    Raises:
        SpecError: the trace cannot be saved; the message is one line with the reason.
    """
    if hashlib.sha256(config.p4_device_config).hexdigest() != needs.program:
        raise SpecError("the switch's program has been replaced meanwhile: trace the packet again")
    if len(needs.entities) > MOST_UPDATES:
        raise SpecError(f"the packet has read {len(needs.entities)} entities; the limit is {MOST_UPDATES}")
    if any(choice >> 63 for choice in needs.choices):
        raise SpecError("the program has drawn a random number of 64 bits, which cannot be saved")
    steps = list(_all(trace.steps))
    try:
        text = program_json(config.p4_device_config).decode()
        updates = [update_of(p4r.Entity.FromString(entity)) for entity in needs.entities]
        enter = next(step for step in steps if isinstance(step, events.EnterEvent))
    except P4RtError as error:
        raise SpecError(str(error)) from None
    except UnicodeDecodeError:
        raise SpecError("the switch's program is not UTF-8") from None
    except (DecodeError, StopIteration):
        raise SpecError("the switch's trace or read set is malformed") from None
    return TraceDocument(
        format="tailrace trace",
        version=1,
        program=SavedProgram(trace.program[:512], text, text_format.MessageToString(config.p4info)),
        switch=SwitchSettings(
            needs.cpu_port, needs.drop_port, needs.priority_queues, needs.time_ns, needs.tick_ns
        ),
        packet=Frame(enter.port, enter.frame),
        write_request=_write_request(updates, config.p4info),
        choices=needs.choices,
        expected=outcome(trace),
        unsure=tuple(_unsure(steps, text)),
    )


def update_of(entity: p4r.Entity) -> p4r.Update:
    """The update that writes an entity to a switch with initial state."""
    modified = entity.WhichOneof("entity") in _ONLY_MODIFIED or entity.table_entry.is_default_action
    return p4r.Update(type=p4r.Update.MODIFY if modified else p4r.Update.INSERT, entity=entity)


def outcome(trace: Trace) -> TraceOutcome:
    """The outcome of a trace."""
    steps = list(_all(trace.steps))
    return TraceOutcome(
        tuple(Frame(step.port, step.frame) for step in steps if isinstance(step, events.SentEvent)),
        tuple(step.reason for step in steps if isinstance(step, events.DropEvent)),
    )


def as_json(document: TraceDocument) -> str:
    """The document as JSON. Raises SpecError if it is too large."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"
    if len(text) > MOST_BYTES:
        raise SpecError(f"the saved trace has {len(text)} bytes; the limit is {MOST_BYTES}")
    return text


def read(path: Path) -> SavedTrace:
    """Reads a saved trace from a file.

    Raises:
        FileError: the file cannot be read, is not a saved trace, or contradicts itself.
    """
    document = read_json(path, TraceDocument, MOST_BYTES)
    try:
        return SavedTrace(document)
    except SpecError as error:
        key, _, problem = str(error).partition(": ")
        raise FileError(path, key, problem) from None


# ---- parts ----


def _all(steps: Sequence[events.Event]) -> Iterator[events.Event]:
    for step in steps:
        yield step
        if isinstance(step, events.CopyEvent):
            yield from _all(step.steps)


def _octets(text: str) -> bytes:
    """A string in UTF-8; lone surrogates are encoded as such, and the parser of the result rejects them."""
    return text.encode("utf-8", "surrogatepass")


def _write_request(updates: Iterable[p4r.Update], p4info: p4i.P4Info) -> str:
    """A WriteRequest in protobuf's text format, with names from P4Info as comments. Raises SpecError."""
    program, text = ProgramNames(p4info), ""
    for update in updates:
        request = p4r.WriteRequest(updates=[update])
        part = text_format.MessageToString(request)
        if parse_write_request(part) != request:  # unknown fields, such as group_action in P4Runtime 1.5.0
            raise SpecError(
                f"{program.described(update.entity)}: it has fields that the text format cannot express"
            )
        text += f"# {one_line(program.described(update.entity))}\n{part}"
    return text


# fields of standard metadata that depend on the time, and on the queues
_TIMES = {"ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta"}
_QUEUES = {"enq_qdepth", "deq_qdepth"}


def _unsure(steps: Sequence[events.Event], program: str) -> Iterator[Unsure]:
    """Reasons why the outcome may differ on another switch."""
    try:
        fields = set(_fields(json.loads(program)))
    except (ValueError, AttributeError, RecursionError):
        raise SpecError("the switch's program is not BMv2 JSON") from None
    if fields & _TIMES:
        yield "time"
    if fields & _QUEUES:
        yield "queue"
    if any(isinstance(step, events.RandomEvent) for step in steps):
        yield "random"
    if any(isinstance(step, events.MeterEvent) for step in steps):
        yield "meter"
    members: dict[tuple[str, int | None], set[int | None]] = {}
    for step in steps:
        if isinstance(step, events.MemberEvent) and step.group is not None:
            members.setdefault((step.profile, step.group), set()).add(step.member)
    if any(len(chosen) > 1 for chosen in members.values()):
        yield "selection"


def _fields(program: dict[str, Any]) -> Iterator[str]:
    """The names of all fields that a BMv2 JSON program uses, and perhaps some other strings."""
    pending: list[Any] = [node for key, node in program.items() if key != "field_aliases"]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending += node.values()
        elif isinstance(node, list):
            if len(node) == 2 and isinstance(node[0], str) and isinstance(node[1], str):
                yield node[1]  # [header, field]
            pending += node
