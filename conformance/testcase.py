# SPDX-License-Identifier: Apache-2.0
"""Test cases of P4Testgen in its PROTOBUF form: what to install, what to send, what shall come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from finsy.proto import p4i, p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from conformance.program import ConformanceError
from tailrace.bmv2.dataplane import Outputs
from tailrace.words.files import read_bytes
from tailrace.words.text import one_line

MAX_FILE = 4 << 20
MAX_PORT = 511
_BYTES = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_INT32 = descriptor_pb2.FieldDescriptorProto.TYPE_INT32
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
# The messages of a test case: field number, name, type or message; a list is a repeated field.
_MESSAGES: dict[str, list[tuple[int, str, object]]] = {
    "Sent": [(1, "packet", _BYTES), (2, "port", _INT32)],
    "Expected": [(1, "packet", _BYTES), (2, "port", _INT32), (3, "packet_mask", _BYTES)],
    "TestCase": [
        (1, "input_packet", "Sent"),
        (2, "expected_output_packet", ["Expected"]),
        (3, "entities", [".p4.v1.Entity"]),
        (4, "traces", [_STRING]),
        (5, "metadata", [_STRING]),
    ],
}
# Free text about the path that was taken; quotes in it are not escaped.
_TRACE = re.compile(rb"^traces: .*\n", re.MULTILINE)


def _message_class() -> Any:
    package = "tailrace.testgen"
    file = descriptor_pb2.FileDescriptorProto(name="tailrace/testgen.proto", package=package, syntax="proto3")
    file.dependency.append(p4r.Entity.DESCRIPTOR.file.name)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field_name, kind in fields:
            field = message.field.add(name=field_name, number=number)
            field.label = field.LABEL_REPEATED if isinstance(kind, list) else field.LABEL_OPTIONAL
            (one,) = kind if isinstance(kind, list) else (kind,)
            if isinstance(one, str):
                field.type = _MESSAGE
                field.type_name = one if one.startswith(".") else f".{package}.{one}"
            else:
                field.type = cast("Any", one)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.TestCase"))


_TestCase = _message_class()


@dataclass(frozen=True, slots=True)
class Expected:
    """A packet that shall leave by `port`; of `data` only the bits set in `mask` count."""

    port: int
    data: bytes
    mask: bytes

    def meets(self, port: int, data: bytes) -> bool:
        """Whether a packet that left is this one."""
        if (port, len(data)) != (self.port, len(self.data)):
            return False
        return all((a ^ b) & m == 0 for a, b, m in zip(data, self.data, self.mask, strict=True))


@dataclass(frozen=True, slots=True)
class Case:
    """One test: entities to insert, in order; then a packet; then what leaves, in any order."""

    name: str
    entities: tuple[p4r.Entity, ...]
    port: int
    packet: bytes
    expected: tuple[Expected, ...]

    def passed(self, outputs: Outputs) -> bool:
        """Whether the outputs are the expected ones."""
        left = list(outputs)
        for one in self.expected:
            met = next((output for output in left if one.meets(*output)), None)
            if met is None:
                return False
            left.remove(met)
        return not left


def read_case(path: Path, p4info: p4i.P4Info) -> Case:
    """Read one file of P4Testgen for the program of `p4info`.

    Raises:
        ConformanceError: it is none; with the file's name and what is wrong in it.
    """
    message = _TestCase()
    try:
        text = _TRACE.sub(b"", read_bytes(path, MAX_FILE)).decode("utf-8")
        text_format.Parse(text, message)
    except (text_format.ParseError, UnicodeDecodeError, OSError) as error:
        raise ConformanceError(f"{path}: no test case: {one_line(str(error))}") from error
    if not message.HasField("input_packet"):
        raise ConformanceError(f"{path}: no test case: input_packet is missing")
    expected = []
    for packet in (message.input_packet, *message.expected_output_packet):
        if not 0 <= packet.port <= MAX_PORT:
            raise ConformanceError(f"{path}: port {packet.port}, expected 0 to {MAX_PORT}")
    for packet in message.expected_output_packet:
        if len(packet.packet_mask) != len(packet.packet):
            lengths = f"{len(packet.packet_mask)} bytes, expected the packet's {len(packet.packet)}"
            raise ConformanceError(f"{path}: packet_mask has {lengths}")
        expected.append(Expected(packet.port, packet.packet, packet.packet_mask))
    sent = message.input_packet
    entities = tuple(_Repair(p4info)(message.entities))
    return Case(path.stem, entities, sent.port, sent.packet, tuple(expected))


class _Repair:
    """Writes entities as P4Runtime asks for them: P4Testgen leaves bits behind a prefix and outside of a
    mask, matches that match everything, one-shot action sets without weights, and such sets for tables whose
    action profile has no selector, which take a member.
    """

    def __init__(self, p4info: p4i.P4Info) -> None:
        self.widths = {
            (table.preamble.id, field.id): field.bitwidth
            for table in p4info.tables
            for field in table.match_fields
        }
        plain = {profile.preamble.id for profile in p4info.action_profiles if not profile.with_selector}
        self.profiles = {
            table.preamble.id: table.implementation_id
            for table in p4info.tables
            if table.implementation_id in plain
        }
        self.members = 0

    def __call__(self, entities: Iterable[p4r.Entity]) -> Iterator[p4r.Entity]:
        for entity in entities:
            entry = p4r.TableEntry()
            entry.CopyFrom(entity.table_entry)
            for match in entry.match:
                self._field(match, self.widths.get((entry.table_id, match.field_id), 0))
            asked = [match for match in entry.match if match.WhichOneof("field_match_type")]
            del entry.match[:]
            entry.match.extend(asked)
            choices = entry.action.action_profile_action_set.action_profile_actions
            for choice in choices:
                choice.weight = choice.weight or 1
            if len(choices) == 1 and entry.table_id in self.profiles:
                self.members += 1
                member = p4r.ActionProfileMember(member_id=self.members, action=choices[0].action)
                member.action_profile_id = self.profiles[entry.table_id]
                yield p4r.Entity(action_profile_member=member)
                entry.action.action_profile_member_id = self.members
            yield p4r.Entity(table_entry=entry) if entity.HasField("table_entry") else entity

    @staticmethod
    def _field(match: p4r.FieldMatch, width: int) -> None:
        """Canonical, or empty where it matches everything."""
        top = (1 << width) - 1
        if match.HasField("lpm"):
            prefix = match.lpm.prefix_len
            _masked(match.lpm, top ^ top >> prefix if 0 <= prefix <= width else top)
            if prefix == 0:
                match.ClearField("lpm")
        elif match.HasField("ternary"):
            mask = int.from_bytes(match.ternary.mask, "big")
            _masked(match.ternary, mask)
            if mask == 0:
                match.ClearField("ternary")
        elif match.HasField("range"):
            low, high = (int.from_bytes(end, "big") for end in (match.range.low, match.range.high))
            if (low, high) == (0, top):
                match.ClearField("range")


def _masked(match: p4r.FieldMatch.LPM | p4r.FieldMatch.Ternary, mask: int) -> None:
    match.value = (int.from_bytes(match.value, "big") & mask).to_bytes(len(match.value), "big")


def read_cases(folder: Path, p4info: p4i.P4Info) -> list[Case]:
    """All test cases of a folder, in the order in which they were made."""
    return [read_case(path, p4info) for path in sorted(folder.glob("*.txtpb"), key=_number)]


def _number(path: Path) -> tuple[int, str]:
    digits = re.search(r"_(\d+)$", path.stem)
    return int(digits[1]) if digits else 0, path.stem
