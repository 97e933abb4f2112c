# SPDX-License-Identifier: Apache-2.0
"""Measuring intervals: which flows count, how long the network stays loaded, and whether flows accumulate."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.workloads.classes import BACKGROUND, MONITORED
from tailrace.experiments.workloads.interval import Interval
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.results.estimates import comparison_groups
from tailrace.results.metrics import METRICS, measure
from tailrace.results.result import Result, read_result
from tailrace.results.rows import FlowRow
from tailrace.results.steady import PARTS, steady_of
from tailrace.results.summary import packets
from tailrace.results.table import make_table
from tailrace.spec import SpecError
from tailrace.topology import parse_topology

TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us")
LOADED = "poisson:size=10KB,load=0.5"


def flows(spec: str) -> list[tuple[int, str]]:
    """Start and class of each flow."""
    traffic = parse_workload(spec).traffic(TOPOLOGY, random.Random(1))
    return [(flow.start_ns, traffic.classes.get(flow.id, "")) for flow in traffic.flows]


def test_flows_that_start_in_the_interval_count() -> None:
    """The same flows as without an interval; by default they start until twice its end."""
    with_interval, all_flows = flows(f"{LOADED},measure=100us..300us"), flows(f"{LOADED},duration=600us")
    assert [start for start, _ in with_interval] == [start for start, _ in all_flows]
    for start_ns, flow_class in with_interval:
        assert flow_class == ("" if 100_000 <= start_ns < 300_000 else BACKGROUND)
    assert max(start for start, _ in flows(f"{LOADED},measure=100us..300us,duration=900us")) > 600_000


def test_bursts_do_not_measure_the_warm_up() -> None:
    spec = f"{LOADED},measure=100us..300us,bursts=2,every=50us"
    measured = [start for start, flow_class in flows(spec) if flow_class == MONITORED]
    assert measured
    assert all(100_000 <= start < 300_000 for start in measured)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("", "key 'duration' is missing"),
        (",measure=5ms", "an interval such as 5ms..20ms"),
        (",measure=5ms..5ms", "an interval such as 5ms..20ms"),
        (",measure=..5ms", "an interval such as 5ms..20ms"),
        (",measure=1ms..2ms,duration=1ms", "duration must not end before measure does"),
    ],
)
def test_bad_intervals(keys: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_workload(LOADED + keys)


def row(start_ns: int, end_ns: int | None, interval: Interval) -> FlowRow:
    fct = None if end_ns is None else end_ns - start_ns
    slowdown = None if fct is None else fct / 10
    flow_class = "" if interval.has(start_ns) else BACKGROUND
    return FlowRow(1, "h1", "h2", 1000, start_ns, end_ns, fct, 10, slowdown, 1, 0, flow_class=flow_class)


def test_a_load_that_is_carried_is_steady() -> None:
    """One flow at a time, each of 30 ns."""
    interval = Interval(150, 300)
    rows = [row(start, start + 30, interval) for start in range(0, 600, 30)]
    burst = dataclasses.replace(rows[0], start_ns=160, end_ns=None, fct_ns=None, slowdown=None)
    assert not isinstance(steady_of([*rows, burst], interval).ended_ns, msgspec.UnsetType)
    steady = steady_of(rows, interval)
    assert (steady.active_first, steady.active_last, steady.settled) == (1, 1, True)
    assert len(steady.slowdown) == PARTS
    assert set(steady.slowdown) == {3, None}  # parts of 15 ns, of which every other one has a start
    assert (steady.loaded_ns, steady.ended_ns) == (570, 300)


def test_flows_that_accumulate_are_not() -> None:
    """They start more often than they end; those without an end are active to the end of the interval."""
    interval = Interval(30, 300)
    rows = [row(start, None if start > 200 else start + 200, interval) for start in range(0, 600, 10)]
    steady = steady_of(rows, interval)
    assert not steady.settled
    assert steady.active_last > 1.5 * steady.active_first
    assert steady.ended_ns is msgspec.UNSET


def test_slowdowns_that_grow_are_not_steady() -> None:
    """As under Flowcut at a load of 0.7 for 25 ms: as many active flows in the interval, but ever slower ones."""
    steady = steady_of(
        [row(start, start + 30, Interval(150, 300)) for start in range(0, 600, 30)], Interval(150, 300)
    )
    assert steady.is_steady
    for last, is_steady in ((3.8, True), (4.0, False), (None, True)):
        changed = msgspec.structs.replace(steady, slowdown=(*[1.0] * 5, *[3.0] * 10, *[last] * 5))
        assert changed.is_steady is is_steady
    assert not msgspec.structs.replace(steady, settled=False).is_steady


def test_a_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run ends when the measured flows are complete, and its table names the interval."""
    words = ["run", "--scheme", "ecmp", "--target", "virtual", "--topology", TOPOLOGY.spec]
    words += ["--workload", f"{LOADED},measure=100us..300us", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "measured: flows that start from 100us to 300us; the others load the network" in shown
    result = read_result(tmp_path / "out", case="clean", label="ecmp")
    steady = result.summary.steady
    assert not isinstance(steady, msgspec.UnsetType)
    assert steady.settled
    measured = [each for each in result.rows if 100_000 <= each.start_ns < 300_000]
    assert result.summary.flows == len(measured)
    ended_ns = steady.ended_ns
    assert not isinstance(ended_ns, msgspec.UnsetType)
    assert max(each.end_ns or 0 for each in measured) == ended_ns < steady.loaded_ns
    assert any(each.end_ns is None for each in result.rows)


def test_accumulating_flows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The uplink of a leaf carries a third of what its hosts send."""
    narrow = "leaf-spine:leaves=2,spines=1,hosts=4,rate=10Gbps,delay=1us"
    words = ["run", "--scheme", "ecmp", "--target", "virtual", "--topology", narrow]
    words += ["--workload", "poisson:size=10KB,load=0.8,peers=remote,measure=200us..800us"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert "no steady state, as flows accumulate or slowdowns grow: ecmp" in capsys.readouterr().out


NETWORK: Any = {
    "target": "virtual",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "seed": 1,
}
COUNTERS = (
    *("out_of_order", "out_of_order_raw", "ood_max", "retransmitted", "drains", "drained_ns", "path_changes"),
    *("timeouts", "blocked", "explored", "overtaken", "end_ns", "fct_ns", "slowdown"),
)


def test_the_table_says_in_which_columns_all_flows_count() -> None:
    """Metrics of flows change with what became of background flows if and only if they are marked so."""
    result = tailrace.run(scheme="spray", workload=f"{LOADED},measure=100us..300us", **NETWORK)
    rows = tuple(
        dataclasses.replace(row, **of_background(row)) if row.flow_class == BACKGROUND else row
        for row in result.rows
    )
    summary = msgspec.structs.replace(result.summary, packets=packets(rows))
    before, after = measure(result), measure(dataclasses.replace(result, rows=rows, summary=summary))
    of_flows = {name for name, entry in METRICS.items() if entry.by_class and name in before}
    assert {name for name in of_flows if before[name] != after[name]} == {
        name for name in of_flows if METRICS[name].of_all
    }
    with_interval = caption_of(result)
    assert "all flows, not only these, count in: packets out of order, arrivals out of order" in with_interval
    without = tailrace.run(scheme="spray", workload="permutation:size=16KiB", **NETWORK)
    assert "not only these" not in caption_of(without)


def of_background(row: FlowRow) -> dict[str, Any]:
    """Larger values of what is measured of a flow."""
    return {name: (getattr(row, name) or 0) + 500 for name in COUNTERS}


def caption_of(result: Result) -> str:
    """The lines below the table of a run."""
    return "\n".join(make_table(comparison_groups([result])).caption)
