# SPDX-License-Identifier: Apache-2.0
"""Saved traces: versioned JSON files with the program, the packet's read set and its outcome. Readers check
all of it; docs/switch/replay.md describes the format.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError
from msgspec import Meta

from tailrace.p4rt.requests import TraceNeeds
from tailrace.p4rt.status import P4RtError
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.schema import read_json
from tailrace.switch.core.lib import C
from tailrace.switch.p4runtime.device_config import program_json
from tailrace.switch.replay.entities import Entity, Id, Rate
from tailrace.switch.replay.entity_codec import EntityCodec
from tailrace.switch.trace import Trace, events

MOST_BYTES = 16 << 20
"""Size limit of a file."""

MOST_PROGRAM_BYTES = 64 << 20
"""Size limit of the BMv2 JSON, and of the P4Info, uncompressed."""

MOST_ENTITIES = 10_000

_Frame = Annotated[
    str,
    Meta(
        pattern=rf"^([0-9a-f]{{2}}){{0,{C.TR_MAX_FRAME}}}$",
        description=f"a frame in base 16, of at most {C.TR_MAX_FRAME} bytes",
    ),
]
_Port = Annotated[int, Meta(ge=0, lt=C.TR_MAX_PORTS, description=f"a port below {C.TR_MAX_PORTS}")]
_Packed = Annotated[str, Meta(description="zlib's format in base 64")]
_Why = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9 _-]{0,63}$", description="a reason of lower-case letters")]
Unsure = Literal["time", "queue", "random", "meter", "selection"]


class _DocumentPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all parts."""


class SavedProgram(_DocumentPart, frozen=True):
    """The program: BMv2's JSON, and P4Info as a binary message; sha256: of the JSON."""

    name: Annotated[
        str,
        Meta(pattern=r"^[^\ud800-\udfff]{0,512}$", description="a text of at most 512 characters of Unicode"),
    ]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$", description="SHA-256 in base 16, of 64 digits")]
    json: _Packed
    p4info: _Packed


class SwitchSettings(_DocumentPart, frozen=True):
    """Settings of the switch: special ports, queues, its time and its tick in ns."""

    cpu_port: _Port | None
    drop_port: Id
    priority_queues: Annotated[
        int, Meta(ge=1, le=C.TR_MAX_PRIORITIES, description=f"a number from 1 to {C.TR_MAX_PRIORITIES}")
    ]
    time_ns: Rate
    tick_ns: Annotated[int, Meta(ge=1, lt=1 << 31, description="a whole number from 1 on, below 2^31")]


class Frame(_DocumentPart, frozen=True):
    """A frame at a port."""

    port: _Port
    frame: _Frame

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return bytes.fromhex(self.frame)


class TraceOutcome(_DocumentPart, frozen=True):
    """Outcome of the packet and its copies: sent frames and reasons of drops, in order."""

    sent: tuple[Frame, ...]
    dropped: tuple[_Why, ...]


class TraceDocument(_DocumentPart, frozen=True, kw_only=True):
    """A saved trace.

    choices: outcomes of random numbers, colours and groups, as switch.trace.dry_run takes them
    unsure: reasons why the outcome may differ on another switch
    """

    format: Literal["tailrace trace"]
    version: Literal[1]
    program: SavedProgram
    switch: SwitchSettings
    packet: Frame
    entities: Annotated[
        tuple[Entity, ...],
        Meta(max_length=MOST_ENTITIES, description=f"a list of at most {MOST_ENTITIES} entities"),
    ]
    choices: Annotated[
        tuple[Rate, ...], Meta(max_length=4096, description="a list of at most 4096 numbers below 2^63")
    ]
    expected: TraceOutcome
    unsure: tuple[Unsure, ...]


class SavedTrace:
    """A checked document with its unpacked program, `json`, and `p4info`."""

    def __init__(self, document: TraceDocument) -> None:
        """Raises SpecError, which begins with the wrong key."""
        self.document = document
        program = document.program
        self.json = _unpacked(program.json, "program.json")
        if hashlib.sha256(self.json).hexdigest() != program.sha256:
            raise SpecError("program.sha256: it does not match program.json")
        info = _unpacked(program.p4info, "program.p4info")
        try:
            self.p4info = p4i.P4Info.FromString(info)
        except DecodeError:
            raise SpecError("program.p4info: no P4Info") from None
        codec = EntityCodec(self.p4info)
        self.entities = []
        """The document's entities as messages, in order."""
        for at, entity in enumerate(document.entities):
            try:
                self.entities.append(codec.encode(entity))
            except (SpecError, ValueError) as error:  # a number that the message's field does not take
                raise SpecError(f"entities[{at}]: {error}") from None


def saved(trace: Trace, needs: TraceNeeds, config: p4r.ForwardingPipelineConfig) -> TraceDocument:
    """A document of a trace and its read set.

    Raises:
        SpecError: it cannot be saved; why, in one line.
    """
    if hashlib.sha256(config.p4_device_config).hexdigest() != needs.program:
        raise SpecError("the switch has got another program meanwhile: trace the packet again")
    if len(needs.entities) > MOST_ENTITIES:
        raise SpecError(f"the packet has read {len(needs.entities)} entities; at most {MOST_ENTITIES} fit")
    if any(choice >> 63 for choice in needs.choices):
        raise SpecError("the program has drawn a number of 64 bits: it cannot be saved")
    try:
        text = program_json(config.p4_device_config)
    except P4RtError as error:
        raise SpecError(str(error)) from None
    codec = EntityCodec(config.p4info)
    steps = list(_all(trace.steps))
    try:
        entities = tuple(codec.decode(p4r.Entity.FromString(entity)) for entity in needs.entities)
        enter = next(step for step in steps if isinstance(step, events.EnterEvent))
    except (DecodeError, KeyError, StopIteration):
        raise SpecError("the switch's trace or read set is malformed") from None
    return TraceDocument(
        format="tailrace trace",
        version=1,
        program=SavedProgram(
            trace.program[:512], hashlib.sha256(text).hexdigest(), _packed(text), _packed_info(config.p4info)
        ),
        switch=SwitchSettings(
            needs.cpu_port, needs.drop_port, needs.priority_queues, needs.time_ns, needs.tick_ns
        ),
        packet=Frame(enter.port, enter.frame),
        entities=entities,
        choices=needs.choices,
        expected=outcome(trace),
        unsure=tuple(_unsure(steps, text)),
    )


def outcome(trace: Trace) -> TraceOutcome:
    """The outcome of a trace."""
    steps = list(_all(trace.steps))
    return TraceOutcome(
        tuple(Frame(step.port, step.frame) for step in steps if isinstance(step, events.SentEvent)),
        tuple(step.reason for step in steps if isinstance(step, events.DropEvent)),
    )


def as_json(document: TraceDocument) -> str:
    """The document as text. Raises SpecError where it is too large."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"
    if len(text) > MOST_BYTES:
        raise SpecError(f"the saved trace has {len(text)} bytes; at most {MOST_BYTES} are allowed")
    return text


def read(path: Path) -> SavedTrace:
    """A saved trace from a file.

    Raises:
        FileError: it cannot be read, is no saved trace, or contradicts itself.
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


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _packed_info(info: p4i.P4Info) -> str:
    return _packed(info.SerializeToString(deterministic=True))


def _unpacked(text: str, key: str) -> bytes:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), MOST_PROGRAM_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise SpecError(f"{key}: expected zlib's format in base 64") from None
    if len(data) > MOST_PROGRAM_BYTES:
        raise SpecError(f"{key}: unpacked it is larger than {MOST_PROGRAM_BYTES >> 20} MiB")
    if not reader.eof or reader.unused_data:
        raise SpecError(f"{key}: cut off, or more than one")
    return data


_TIMES = {"ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta"}
_QUEUES = {"enq_qdepth", "deq_qdepth"}


def _unsure(steps: Sequence[events.Event], program: bytes) -> Iterator[Unsure]:
    """Reasons why the outcome may differ on another switch."""
    try:
        fields = set(_fields(json.loads(program)))
    except (ValueError, AttributeError, RecursionError):
        raise SpecError("the switch's program is no BMv2 JSON") from None
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
    """The names of fields that a program of BMv2 JSON uses, among other names."""
    waiting: list[Any] = [node for key, node in program.items() if key != "field_aliases"]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            if len(node) == 2 and isinstance(node[0], str) and isinstance(node[1], str):
                yield node[1]
            waiting += node
