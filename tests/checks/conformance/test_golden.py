# SPDX-License-Identifier: Apache-2.0
"""The native switch does to every recorded packet what BMv2 did: replay of the golden outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.conformance.compare import normalized
from checks.conformance.golden import Golden, read_golden
from checks.conformance.native_switch import NativeSwitch
from checks.conformance.program import load_programs

TESTS = Path(__file__).resolve().parents[2]
BUILD = TESTS / "programs" / "build"
GOLDEN = sorted((TESTS / "golden").glob("*.json.xz"))


def program_name(path: Path) -> str:
    """The program a golden file belongs to."""
    return path.name.removesuffix(".json.xz")


def test_every_program_has_a_golden_file() -> None:
    """No program is left out, and no golden file is left over."""
    assert [program_name(path) for path in GOLDEN] == sorted(path.stem for path in BUILD.glob("*.json"))


def replay(golden: Golden, native: NativeSwitch) -> list[str]:
    """One line for each packet whose outputs differ from the recorded ones."""
    lines = []
    for index, (packet, expected) in enumerate(zip(golden.packets, golden.outputs, strict=True)):
        actual = native.window([packet])[0]
        if sorted(normalized(actual, golden.mask)) != sorted(normalized(expected, golden.mask)):
            shown = [(port, data.hex()) for port, data in actual]
            recorded = [(port, data.hex()) for port, data in expected]
            lines.append(f"packet {index} port {packet.port} {packet.data.hex()}: {shown}, BMv2 {recorded}")
    return lines


@pytest.mark.parametrize("path", GOLDEN, ids=program_name)
def test_native_switch_repeats_bmv2(path: Path) -> None:
    """Packets, then counters and registers, are as BMv2 left them."""
    golden = read_golden(path)
    (program,) = load_programs(BUILD, golden.program)
    assert program.sha256 == golden.sha256, (
        "recompiled since: record anew with 'python -m checks.conformance --golden'"
    )
    with NativeSwitch(program) as native:
        native.install(golden.updates)
        differences = replay(golden, native)
        assert differences[:3] == []
        assert native.counters() == golden.counters
        assert native.direct_counters(golden.updates) == golden.direct_counters
        assert native.registers() == golden.registers
