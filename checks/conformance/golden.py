# SPDX-License-Identifier: Apache-2.0
"""Golden outcomes: packets with BMv2's outputs, recorded so that machines without BMv2 can check the native
switch.

A golden file is xz-compressed JSON: the program's name and the digest of its compiled JSON, the updates that
a controller writes, the mask (byte ranges that are not compared), the packets as [ingress port, frame,
[[egress port, frame], ...]] in hexadecimal, then the final counters and registers. It contains all that a
replay needs, so that it stays valid when the generator changes.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from checks.conformance.bmv2 import Bmv2
from checks.conformance.compare import windows
from checks.conformance.p4rt import Cells
from checks.conformance.packets import Packet, generate
from checks.conformance.program import CompiledProgram
from tailrace.bmv2.dataplane import Outputs
from tailrace.p4rt.messages import p4r

MAX_PACKETS = 2000
MAX_FRAME_BYTES = 256
MAX_FILE_BYTES = 150_000
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden file in memory."""

    program: str
    sha256: str
    updates: list[p4r.Update]
    mask: list[tuple[int, int]]
    packets: list[Packet]
    outputs: list[Outputs]
    counters: Cells
    direct_counters: Cells
    registers: dict[str, list[int]]


def write_golden(program: CompiledProgram, seed: int, path: Path, log: Path) -> tuple[int, int]:
    """Run packets through BMv2 and write the golden file; returns (packets, bytes of the file).

    Uses fewer packets if the file would be larger than MAX_FILE_BYTES.
    """
    count = MAX_PACKETS
    while True:
        data = lzma.compress(
            json.dumps(_record(program, seed, count, log), separators=(",", ":")).encode(), preset=9
        )
        if len(data) <= MAX_FILE_BYTES:
            path.write_bytes(data)
            return count, len(data)
        count = min(count * 9 // 10, count * MAX_FILE_BYTES // len(data))


def _record(program: CompiledProgram, seed: int, count: int, log: Path) -> dict[str, Any]:
    updates, stream = generate(program, seed)
    packets = list(islice((packet for packet in stream if len(packet.data) <= MAX_FRAME_BYTES), count))
    with Bmv2(program, log) as bmv2:
        bmv2.install(updates)
        outputs = [output for window in windows(packets) for output in bmv2.window(window)]
        return {
            "format": FORMAT,
            "program": program.name,
            "sha256": program.sha256,
            "updates": [update.SerializeToString(deterministic=True).hex() for update in updates],
            "mask": program.hints.mask,
            "packets": [
                [
                    packet.port,
                    packet.data.hex(),
                    [[port, data.hex()] for port, data in sorted(packet_outputs, key=lambda o: o[0])],
                ]
                for packet, packet_outputs in zip(packets, outputs, strict=True)
            ],
            "counters": bmv2.counters(),
            "direct_counters": bmv2.direct_counters(updates),
            "registers": bmv2.registers(),
        }


def read_golden(path: Path) -> Golden:
    data = json.loads(lzma.decompress(path.read_bytes()))
    if data["format"] != FORMAT:
        raise ValueError(f"{path}: golden format {data['format']}, expected {FORMAT}")
    return Golden(
        program=data["program"],
        sha256=data["sha256"],
        updates=[p4r.Update.FromString(bytes.fromhex(update)) for update in data["updates"]],
        mask=[(start, length) for start, length in data["mask"]],
        packets=[Packet(port, bytes.fromhex(frame)) for port, frame, _ in data["packets"]],
        outputs=[
            [(port, bytes.fromhex(frame)) for port, frame in packet_outputs]
            for _, _, packet_outputs in data["packets"]
        ],
        counters=_cells(data["counters"]),
        direct_counters=_cells(data["direct_counters"]),
        registers=data["registers"],
    )


def _cells(data: dict[str, list[list[int]]]) -> Cells:
    return {name: [(octets, packets) for octets, packets in cells] for name, cells in data.items()}
