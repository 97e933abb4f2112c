# SPDX-License-Identifier: Apache-2.0
"""Recorded test cases of our programs: entities, an input packet, and the output packets.

P4Testgen made their inputs by symbolic execution. The expected outputs are those of P4Testgen, or those of
BMv2 if they differ; `record_cases` records them from BMv2 again after a program has changed.

A file is xz-compressed JSON: the program's name and the digest of its compiled JSON, the numbers of
statements that the cases reach and of all statements, every entity once (serialized, in hexadecimal), and the
cases as [name, indexes of entities, port, packet, [[port, packet, mask], ...]].
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checks.conformance.bmv2 import Bmv2
from checks.conformance.p4rt import SwitchUnderTest
from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, ConformanceError
from tailrace.bmv2.dataplane import Outputs
from tailrace.p4rt.errors import SwitchError
from tailrace.p4rt.messages import p4r

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Expected:
    """A packet expected on `port`. Only the bits of `data` that are set in `mask` are compared."""

    port: int
    data: bytes
    mask: bytes

    def meets(self, port: int, data: bytes) -> bool:
        """Whether an output packet is as expected."""
        if (port, len(data)) != (self.port, len(self.data)):
            return False
        return all((a ^ b) & m == 0 for a, b, m in zip(data, self.data, self.mask, strict=True))


@dataclass(frozen=True, slots=True)
class PacketCase:
    """One test: entities to insert, in order; then a packet; then the expected outputs, in any order."""

    name: str
    entities: tuple[p4r.Entity, ...]
    port: int
    packet: bytes
    expected: tuple[Expected, ...]

    def passed(self, outputs: Outputs) -> bool:
        """Whether the outputs are the expected ones."""
        remaining = list(outputs)
        for expected in self.expected:
            matching = next((output for output in remaining if expected.meets(*output)), None)
            if matching is None:
                return False
            remaining.remove(matching)
        return not remaining

    def with_outcome(self, outputs: Outputs) -> PacketCase:
        """The case itself if it passes, else the case with these outputs as the expected ones."""
        if self.passed(outputs):
            return self
        return replace(self, expected=tuple(Expected(p, data, b"\xff" * len(data)) for p, data in outputs))


@dataclass(frozen=True, slots=True)
class Cases:
    """A case file in memory. `covered`: numbers of statements reached, and of all statements."""

    program: str
    sha256: str
    covered: tuple[int, int]
    cases: list[PacketCase]


def run_case(switch: SwitchUnderTest, case: PacketCase) -> Outputs:
    """Pushes the pipeline again, inserts the entities, sends the packet; returns the outputs.

    Raises:
        ConformanceError: the switch refuses something, or the packet recirculates for ever.
    """
    try:
        switch.push()
        switch.insert(case.entities)
    except SwitchError as error:
        raise ConformanceError(f"{case.name}: {error}") from error
    return switch.window([Packet(case.port, case.packet)])[0]


def record_cases(program: CompiledProgram, path: Path, log: Path) -> int:
    """Runs the cases of a file on BMv2, and rewrites the file with its outcomes; returns the number of cases.

    Raises:
        ConformanceError: BMv2 refuses a case.
    """
    recorded = read_cases(path)
    with Bmv2(program, log) as bmv2:
        cases = [case.with_outcome(run_case(bmv2, case)) for case in recorded.cases]
    write_cases(path, replace(recorded, sha256=program.sha256, cases=cases))
    return len(cases)


def write_cases(path: Path, recorded: Cases) -> None:
    """Writes a case file."""
    entities: dict[str, int] = {}
    tests = []
    for case in recorded.cases:
        serialized = [entity.SerializeToString(deterministic=True).hex() for entity in case.entities]
        indexes = [entities.setdefault(entity, len(entities)) for entity in serialized]
        outputs = [[expected.port, expected.data.hex(), expected.mask.hex()] for expected in case.expected]
        tests.append([case.name, indexes, case.port, case.packet.hex(), outputs])
    data = {
        "format": FORMAT,
        "program": recorded.program,
        "sha256": recorded.sha256,
        "covered": recorded.covered,
        "entities": list(entities),
        "tests": tests,
    }
    path.write_bytes(lzma.compress(json.dumps(data, separators=(",", ":")).encode(), preset=9))


def read_cases(path: Path) -> Cases:
    """Reads a case file."""
    data: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    if data["format"] != FORMAT:
        raise ValueError(f"{path}: format {data['format']}, expected {FORMAT}")
    entities = [p4r.Entity.FromString(bytes.fromhex(entity)) for entity in data["entities"]]
    reached, statements = data["covered"]
    cases = [
        PacketCase(
            name,
            tuple(entities[index] for index in indexes),
            port,
            bytes.fromhex(packet),
            tuple(Expected(p, bytes.fromhex(octets), bytes.fromhex(mask)) for p, octets, mask in outputs),
        )
        for name, indexes, port, packet, outputs in data["tests"]
    ]
    return Cases(data["program"], data["sha256"], (reached, statements), cases)
