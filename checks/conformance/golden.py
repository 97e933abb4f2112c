# SPDX-License-Identifier: Apache-2.0
"""Golden outcomes: packets with what BMv2 did to them, kept so that machines without BMv2 can check the
native switch.

A golden file is xz-compressed JSON: the program's name and the digest of its compiled JSON, the whole plan,
the mask, and the packets as [ingress port, frame, [[egress port, frame], ...]] in hexadecimal, then the
counters and registers left. It holds all that a replay needs, so that a change of the generator does not
touch it.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from checks.conformance import plan as plans
from checks.conformance.bmv2 import Bmv2
from checks.conformance.compare import windows
from checks.conformance.generator import generate
from checks.conformance.packets import Packet
from checks.conformance.plan import ControlPlan
from checks.conformance.program import CompiledProgram
from tailrace.bmv2.dataplane import Outputs

MAX_PACKETS = 2000
MAX_FRAME = 256
MAX_FILE = 150_000
FORMAT = 1


_TAGS = {
    "Match": plans.PlannedMatch,
    "Call": plans.PlannedCall,
    "Member": plans.PlannedMember,
    "Group": plans.PlannedGroup,
    "UseMember": plans.UseMember,
    "UseGroup": plans.UseGroup,
    "OneShot": plans.OneShot,
    "Entry": plans.PlannedEntry,
    "Rates": plans.PlannedRates,
    "Plan": ControlPlan,
}
"""The classes of a plan by their names in golden files."""

_TAG_OF = {kind: tag for tag, kind in _TAGS.items()}


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden file in memory."""

    program: str
    sha256: str
    plan: ControlPlan
    mask: list[tuple[int, int]]
    packets: list[Packet]
    outputs: list[Outputs]
    counters: dict[str, list[tuple[int, int]]]
    direct_counters: dict[str, list[tuple[int, int]]]
    registers: dict[str, list[int]]


def plan_to_json(value: object) -> Any:
    """Plans as JSON: every dataclass a list of its tag and its fields, in order."""
    tag = _TAG_OF.get(type(value))
    if tag is not None:
        assert is_dataclass(value)
        return {tag: [plan_to_json(getattr(value, field.name)) for field in fields(value)]}
    if isinstance(value, dict):
        return [[plan_to_json(key), plan_to_json(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [plan_to_json(item) for item in value]
    return value


def _item(value: Any) -> Any:
    """The inverse of `plan_to_json` inside a plan: lists come back as tuples."""
    if isinstance(value, dict):
        ((name, values),) = value.items()
        return _TAGS[name](*(_item(item) for item in values))
    if isinstance(value, list):
        return tuple(_item(item) for item in value)
    return value


def plan_from_json(value: Any) -> ControlPlan:
    """The inverse of `plan_to_json` for a whole plan."""
    entries, defaults, members, groups, multicast, clones, meters, direct_meters, value_sets = (
        _item(field) for field in value["Plan"]
    )
    return ControlPlan(
        entries=list(entries),
        defaults=dict(defaults),
        members=list(members),
        groups=list(groups),
        multicast={key: list(pairs) for key, pairs in multicast},
        clones={key: list(pairs) for key, pairs in clones},
        meters=dict(meters),
        direct_meters=dict(direct_meters),
        value_sets={key: list(values) for key, values in value_sets},
    )


def write_golden(program: CompiledProgram, seed: int, path: Path, log: Path) -> tuple[int, int]:
    """Run packets through BMv2 and write the golden file; returns (packets, bytes of the file).

    Fewer packets are taken where the file would grow over MAX_FILE.
    """
    count = MAX_PACKETS
    while True:
        data = lzma.compress(
            json.dumps(_record(program, seed, count, log), separators=(",", ":")).encode(), preset=9
        )
        if len(data) <= MAX_FILE:
            path.write_bytes(data)
            return count, len(data)
        count = min(count * 9 // 10, count * MAX_FILE // len(data))


def _record(program: CompiledProgram, seed: int, count: int, log: Path) -> dict[str, Any]:
    plan, stream = generate(program, seed)
    packets = list(islice((packet for packet in stream if len(packet.data) <= MAX_FRAME), count))
    with Bmv2(program, log) as bmv2:
        bmv2.install(plan)
        outputs = [output for window in windows(packets) for output in bmv2.window(window)]
        return {
            "format": FORMAT,
            "program": program.name,
            "sha256": program.sha256,
            "plan": plan_to_json(plan),
            "mask": program.hints.mask,
            "packets": [
                [
                    packet.port,
                    packet.data.hex(),
                    [[port, data.hex()] for port, data in sorted(caused, key=lambda o: o[0])],
                ]
                for packet, caused in zip(packets, outputs, strict=True)
            ],
            "counters": bmv2.client.counters(),
            "direct_counters": bmv2.client.direct_counters(plan),
            "registers": bmv2.registers(),
        }


def read_golden(path: Path) -> Golden:
    data = json.loads(lzma.decompress(path.read_bytes()))
    if data["format"] != FORMAT:
        raise ValueError(f"{path}: golden format {data['format']}, expected {FORMAT}")
    return Golden(
        program=data["program"],
        sha256=data["sha256"],
        plan=plan_from_json(data["plan"]),
        mask=[(start, length) for start, length in data["mask"]],
        packets=[Packet(port, bytes.fromhex(frame)) for port, frame, _ in data["packets"]],
        outputs=[
            [(port, bytes.fromhex(frame)) for port, frame in caused] for _, _, caused in data["packets"]
        ],
        counters=_cells(data["counters"]),
        direct_counters=_cells(data["direct_counters"]),
        registers=data["registers"],
    )


def _cells(data: dict[str, list[list[int]]]) -> dict[str, list[tuple[int, int]]]:
    return {name: [(octets, packets) for octets, packets in cells] for name, cells in data.items()}
