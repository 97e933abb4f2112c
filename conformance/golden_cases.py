# SPDX-License-Identifier: Apache-2.0
"""P4Testgen's tests of our programs, kept so that machines without it can run them.

A file is xz-compressed JSON: the program's name and the digest of its compiled JSON, what P4Testgen reports
to be covered, every entity once, serialized, in hexadecimal, and the tests as [name, indexes of entities,
port, packet, [[port, packet, mask], ...]]. Where both switches do something else than P4Testgen expects,
what BMv2 does is kept instead.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from conformance.program import CompiledProgram
from conformance.run_cases import Refused, Verdict
from conformance.testcase import Case, Expected

FORMAT = 1
MAX_FILE = 20_000


@dataclass(frozen=True, slots=True)
class GoldenCases:
    """A file in memory."""

    program: str
    sha256: str
    covered: tuple[int, int]
    cases: list[Case]


def kept(verdict: Verdict) -> Case | None:
    """The test as it is kept; None where the switches do not agree or take its entities not."""
    if not verdict.agree or isinstance(verdict.bmv2, Refused):
        return None
    case = verdict.case
    if verdict.bmv2_passed:
        return case
    outputs = tuple(Expected(port, data, b"\xff" * len(data)) for port, data in verdict.bmv2)
    return Case(case.name, case.entities, case.port, case.packet, outputs)


def _packed(program: CompiledProgram, covered: tuple[int, int], cases: Sequence[Case]) -> bytes:
    entities: dict[str, int] = {}
    tests = []
    for case in cases:
        used = [entity.SerializeToString(deterministic=True).hex() for entity in case.entities]
        indexes = [entities.setdefault(entity, len(entities)) for entity in used]
        outputs = [[one.port, one.data.hex(), one.mask.hex()] for one in case.expected]
        tests.append([case.name, indexes, case.port, case.packet.hex(), outputs])
    data = {
        "format": FORMAT,
        "program": program.name,
        "sha256": program.sha256,
        "covered": covered,
        "entities": list(entities),
        "tests": tests,
    }
    return lzma.compress(json.dumps(data, separators=(",", ":")).encode(), preset=9)


def write_cases(
    program: CompiledProgram, covered: tuple[int, int], verdicts: Sequence[Verdict], folder: Path
) -> None:
    """Write the file of one program, with as many of its first tests as MAX_FILE has room for; without any,
    none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{program.name}.json.xz"
    path.unlink(missing_ok=True)
    cases = [case for verdict in verdicts if (case := kept(verdict)) is not None]
    while cases:
        data = _packed(program, covered, cases)
        if len(data) <= MAX_FILE:
            path.write_bytes(data)
            return
        del cases[min(len(cases) * 9 // 10, len(cases) * MAX_FILE // len(data)) :]


def read_cases(path: Path) -> GoldenCases:
    """Read a file that `write_cases` wrote."""
    data: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    if data["format"] != FORMAT:
        raise ValueError(f"{path}: format {data['format']}, expected {FORMAT}")
    entities = [p4r.Entity.FromString(bytes.fromhex(entity)) for entity in data["entities"]]
    reached, statements = data["covered"]
    cases = [
        Case(
            name,
            tuple(entities[index] for index in indexes),
            port,
            bytes.fromhex(packet),
            tuple(Expected(p, bytes.fromhex(octets), bytes.fromhex(mask)) for p, octets, mask in outputs),
        )
        for name, indexes, port, packet, outputs in data["tests"]
    ]
    return GoldenCases(data["program"], data["sha256"], (reached, statements), cases)
