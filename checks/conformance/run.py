# SPDX-License-Identifier: Apache-2.0
"""The differential run of one program: both switches, the packets, then the final state of each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from checks.conformance.bmv2 import Bmv2
from checks.conformance.compare import ComparisonCounts, compare, windows
from checks.conformance.native_switch import NativeSwitch
from checks.conformance.packets import Packet, generate
from checks.conformance.program import CompiledProgram
from tailrace.p4rt.messages import p4r

DIGEST_PACKETS = 500
Cells = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class ConformanceRow:
    """One line of the conformance table."""

    program: CompiledProgram
    entries: int
    result: ComparisonCounts
    state_cells: int
    state_differences: list[str]

    @property
    def passed(self) -> bool:
        """Whether nothing differs."""
        return not self.result.mismatches and not self.state_differences

    def as_json(self) -> dict[str, object]:
        """For conformance.json.

        `transient` counts differences that vanished when the packet was sent again, alone: they are no
        mismatches, and the program passes.
        """
        result = self.result
        return {
            "program": self.program.name,
            "json_sha256": self.program.sha256,
            "entries": self.entries,
            "packets": result.packets,
            "outputs": result.outputs,
            "packets_without_output": result.dropped,
            "mismatches": result.mismatches,
            "transient": result.transient,
            "reordered": result.reordered,
            "state_cells_compared": self.state_cells,
            "state_differences": self.state_differences,
            "examples": [mismatch.as_json() for mismatch in result.examples],
        }


def differing_cells(kind: str, expected: Cells, actual: Cells) -> tuple[int, list[str]]:
    """The number of cells compared, and a line for each that differs."""
    lines, count = [], 0
    for name, cells in expected.items():
        native_cells = actual.get(name, [])
        count += len(cells)
        if len(cells) != len(native_cells):
            lines.append(f"{kind} {name}: bmv2 has {len(cells)} cells, native {len(native_cells)}")
            continue
        for index, (bmv2_value, native_value) in enumerate(zip(cells, native_cells, strict=True)):
            if bmv2_value != native_value:
                lines.append(f"{kind} {name}[{index}]: bmv2 {bmv2_value}, native {native_value}")
    return count, lines


def written(registers: Cells, timing: Collection[str]) -> Cells:
    """The registers; for those that depend on the clock (`timing`), only whether each cell was written."""
    return {
        name: [value != 0 for value in cells] if name in timing else cells
        for name, cells in registers.items()
    }


def compare_digests(
    bmv2: Bmv2, native: NativeSwitch, updates: list[p4r.Update], packets: list[Packet]
) -> tuple[int, list[str]]:
    """Sends packets to both switches; counts distinct digests, with a line for each from one switch only."""
    bmv2.install(updates)
    native.install(updates)
    native.learned.clear()
    bmv2.enable_digests()
    # `window` sends a list of packets. The native switch runs in this process and handles them one by one;
    # BMv2 is a process of its own, which gets at most WINDOW packets at a time.
    native.window(packets)
    for window in windows(packets):
        bmv2.window(window)
    expected = bmv2.take_digests(len(native.learned))
    lines = [f"digest {name} {values}: only bmv2" for name, values in sorted(expected - native.learned)]
    lines += [f"digest {name} {values}: only native" for name, values in sorted(native.learned - expected)]
    return len(expected | native.learned), lines


def run_program(program: CompiledProgram, packets: int, seed: int, log: Path) -> ConformanceRow:
    """Compare the switches on one program."""
    updates, packet_stream = generate(program, seed)
    with Bmv2(program, log) as bmv2, NativeSwitch(program) as native:
        bmv2.install(updates)
        native.install(updates)
        result = compare(
            bmv2.window,
            native.window,
            islice(packet_stream, packets),
            program.hints.mask,
            stateful=program.hints.stateful,
        )
        cells, differences = 0, []
        timing = program.hints.timing
        for kind, expected, actual in (
            ("counter", bmv2.counters(), native.counters()),
            ("direct counter of", bmv2.direct_counters(updates), native.direct_counters(updates)),
            ("register", written(bmv2.registers(), timing), written(native.registers(), timing)),
        ):
            count, lines = differing_cells(kind, expected, actual)
            cells += count
            differences += lines
        if program.p4info.digests:
            digest_packets = list(islice(packet_stream, DIGEST_PACKETS))
            count, lines = compare_digests(bmv2, native, updates, digest_packets)
            cells += count
            differences += lines
    entries = sum(update.entity.HasField("table_entry") for update in updates)
    return ConformanceRow(program, entries, result, cells, differences)
