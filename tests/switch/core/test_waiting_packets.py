# SPDX-License-Identifier: Apache-2.0
"""A packet that waited in a queue leaves, byte by byte, as one that did not: the core packs those that wait."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from checks.conformance.compare import normalized
from checks.conformance.golden import Golden, read_golden
from checks.conformance.native_switch import NativeSwitch
from checks.conformance.program import load_programs

TESTS = Path(__file__).resolve().parents[2]
BUILD = TESTS / "programs" / "build"
GOLDEN = sorted((TESTS / "golden").glob("*.json.xz"))
SPACING_NS = 10
SLOW_BPS = 1_000_000
"""At this rate the smallest frame keeps a port busy for many times the spacing."""


def leaves(golden: Golden, native: NativeSwitch, rate_bps: int) -> Counter[tuple[int, bytes]]:
    """All that leaves the switch when the recorded packets come close together, through ports of this rate."""
    native.install(golden.updates)
    ports = {port for outputs in golden.outputs for port, _ in outputs}
    for port in ports:
        native.switch.port_config(port, rate_bps=rate_bps)
        native.switch.queue_config(port, depth=(0, 0))
    for number, packet in enumerate(golden.packets):
        native.switch.inject(packet.port, packet.data, number * SPACING_NS)
    waiting = sum(native.switch.queue_depth(port, queue)[0] for port in ports for queue in range(8))
    assert (waiting > 0) == (rate_bps > 0)
    native.switch.run(10**15)
    outputs = [(output.port, bytes(output.data)) for output in native.switch.outputs()]
    return Counter(normalized(outputs, golden.mask))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.xz"))
def test_what_waited_leaves_as_what_did_not(path: Path) -> None:
    """Every recorded packet of every program, through ports that are busy and through ports that never are."""
    golden = read_golden(path)
    (program,) = load_programs(BUILD, golden.program)
    with NativeSwitch(program) as prompt, NativeSwitch(program) as slow:
        expected = leaves(golden, prompt, 0)
        actual = leaves(golden, slow, SLOW_BPS)
    assert expected
    assert expected == actual
