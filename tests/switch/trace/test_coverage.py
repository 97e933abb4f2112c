# SPDX-License-Identifier: Apache-2.0
"""What packets use is counted, over several programs and runs, and told by line."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.core import ActionCall, V1ModelSwitch
from tailrace.switch.trace import dry_run_packet, events
from tailrace.switch.trace.coverage import (
    Coverage,
    CoverageError,
    EntryCoverage,
    coverage_of,
    lcov,
    merged,
    read,
    write,
)
from tailrace.switch.trace.live_trace import LiveTracer
from tests.long import some
from tests.switch.trace.test_dry_run import NAMES, PORTS, Twins, frames, program, steps_of


@pytest.mark.parametrize("name", some(NAMES, 5))
def test_counts_are_those_of_the_traces(name: str) -> None:
    """Of 60 packets what is counted of states, actions, conditions and tables is what their traces say."""
    twins = Twins(program(name), seed=9)
    said: Counter[tuple[str, str, str]] = Counter()
    packets = frames(twins.chooser)
    with LiveTracer(twins.tried, None, pytest.fail) as watch:
        for number in range(60):
            port, frame, now_ns = twins.chooser.choice(PORTS), next(packets), 1000 * number
            trace = dry_run_packet(twins.tried, port, frame, at_ns=now_ns)
            for step in steps_of(trace.steps):
                if isinstance(step, events.StateEvent):
                    said["state", step.name, ""] += 1
                elif isinstance(step, events.ActionEvent):
                    said["action", step.name, ""] += 1
                elif isinstance(step, events.ConditionEvent):
                    said["condition", step.text, str(step.value).lower()] += 1
                elif isinstance(step, events.TableEvent) and step.key:
                    said["table", step.name, "miss" if step.entry is None else "hit"] += 1
            for switch in (twins.tried, twins.other):
                switch.inject(port, frame, now_ns)
                switch.run(now_ns)
                switch.outputs()
            twins.enter(trace)
        (coverage,) = watch.coverage()
    counted: Counter[tuple[str, str, str]] = Counter()
    for use in coverage.uses:
        if use.kind in ("state", "action", "condition") or (use.kind == "table" and use.what != "applied"):
            counted[use.kind, use.name, use.what] += use.count
    assert +counted == +said
    assert twins.state(twins.tried) == twins.state(twins.other)


def test_several_programs_and_entries() -> None:
    """Counts of a program that was replaced stay, of one that comes again they go on; entries are told by hits."""
    l3, registers = program("basic_l3"), program("registers")
    route = l3.model.table("L3Ingress.route")
    forward = l3.model.action("L3Ingress.forward").index
    frame = bytes.fromhex("020000000001 020000000009 0800 45000014000000004011 63cf 0a000109 0a000202")
    with V1ModelSwitch(l3) as switch, LiveTracer(switch, None, pytest.fail) as watch:
        switch.inject(1, frame, 0)
        switch.load(registers)
        switch.inject(1, frame, 1000)
        switch.load(program("basic_l3"))
        for prefix in (2, 3):
            switch.table_insert(
                route.index,
                bytes([10, 0, prefix, 0]),
                bytes([255, 255, 255, 0]),
                prefix_bits=24,
                target=ActionCall(forward, (5, 2)),
            )
        switch.inject(1, frame, 2000)
        coverages = watch.coverage(
            lambda was_hit: [
                EntryCoverage("route", str(handle), was_hit(route.index, handle)) for handle in (0, 1)
            ]
        )
    by_name = {coverage.program: coverage for coverage in coverages}
    assert len(by_name) == len(coverages) == 2
    misses, hits = (
        next(
            u.count
            for u in by_name[l3.model.name].uses
            if (u.kind, u.name, u.what) == ("table", route.name, what)
        )
        for what in ("miss", "hit")
    )
    assert (misses, hits) == (1, 1)
    assert by_name[l3.model.name].entries == (
        EntryCoverage("route", "0", True),
        EntryCoverage("route", "1", False),
    )


def test_files_add_up(tmp_path: Path) -> None:
    loaded = program("basic_l3")
    n = len(CoveragePoints(loaded.model).all)
    first = coverage_of(loaded, range(n), [EntryCoverage("t", "a", False), EntryCoverage("t", "b", False)])
    other = coverage_of(loaded, [1] * n, [EntryCoverage("t", "a", True)])
    write([first], tmp_path / "one.json")
    write([other], tmp_path / "other.json")
    (both,) = merged([*read(tmp_path / "one.json"), *read(tmp_path / "other.json")])
    assert [use.count for use in both.uses] == [count + 1 for count in range(n)]
    assert set(both.entries) == {EntryCoverage("t", "a", True), EntryCoverage("t", "b", False)}


@pytest.mark.parametrize(
    "content", [bytes([255, 255, 255, 0]), b"{}", b"[1]", b"[" * 100_000, b'[{"program":1}]', b"\xff\xfe"]
)
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(CoverageError, match=r"bad\.json: not a coverage file") as caught:
        read(tmp_path / "bad.json")
    assert "\n" not in str(caught.value)
    with pytest.raises(CoverageError, match="No such file"):
        read(tmp_path / "missing.json")


def test_lcov() -> None:
    """Lines and branches of basic_l3 after one packet without a route, as lcov has them."""
    frame = next(frames(random.Random(1)))
    loaded = program("basic_l3")
    with V1ModelSwitch(loaded) as switch, LiveTracer(switch, None, pytest.fail) as watch:
        switch.inject(1, frame, 0)
        coverages: list[Coverage] = watch.coverage()
    lines = list(lcov(coverages))
    files = [line.removeprefix("SF:") for line in lines if line.startswith("SF:")]
    assert any(file.endswith("basic_l3.p4") for file in files)
    counts = {
        int(number): int(count)
        for number, count in (line.removeprefix("DA:").split(",") for line in lines if line.startswith("DA:"))
    }
    route = loaded.model.table("L3Ingress.route").source
    assert route is not None
    assert route.line in counts
    assert sum(line.startswith("BRDA:") for line in lines) >= 4
    assert lines.count("end_of_record") == len(files)
