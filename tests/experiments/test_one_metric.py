# SPDX-License-Identifier: Apache-2.0
"""The name of a metric is one number: tables, claims, files and stored runs are asked about the same runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.results.estimates import comparison_groups, summarise
from tailrace.results.metrics import BUILT_IN, METRICS, measure, metrics, split_class
from tailrace.results.result import Result
from tailrace.results.table import COLUMNS, SHOWN, make_table, possible_columns
from tailrace.study.store.store import Store
from tests.experiments.virtual import result_of

RUNS: dict[str, dict[str, Any]] = {
    "pauses and recirculations": {
        "scheme": "rlb:variant=drill,queue=0,margin=20us",
        "topology": "leaf-spine:leaves=2,spines=4,hosts=6,rate=10Gbps,delay=1us,restricted=h10/1",
        "workload": "paused:load=0.25,duration=300us,size=64KiB,pairs=3,servers=2,burst=8,bytes=64KiB,long=1MiB",
        "pfc": "xoff=64KiB",
        "window": "64KiB",
    },
    "trimmed packets": {
        "scheme": "spritz:variant=scout,queue=6KB",
        "topology": "dragonfly:p=2,a=2,h=1",
        "workload": "incast:degree=3,size=64KiB",
    },
    "stretched gaps and samples": {
        "scheme": "letflow:hf2t=on,train=100",
        "topology": "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps",
        "workload": "permutation:size=256KiB,peers=remote",
        "transport": "dcqcn",
        "sample": "10us",
        "gaps": True,
    },
}
"""Small, and together they have nearly all metrics of runs."""

OF_USERS = {"marked_share", "ping_rtt_mean", "ping_rtt_p99", "ping_lost_share"}
"""Metrics of users' programs and of pings (tests/user_programs), which runs of schemes do not have."""

UNOBSERVED = {"failures"} | OF_USERS
STORED = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [result_of(words, label=label) for label, words in RUNS.items()]


def test_most_metrics_are_measured(results: list[Result]) -> None:
    """Otherwise the comparison below would be about nothing."""
    seen = {name for result in results for name in measure(result)}
    computed = {name for name in BUILT_IN if METRICS[name].compute is not None}
    assert computed - seen <= UNOBSERVED
    for name in ("lost", "recirculations", "out_of_order_share", "pauses", "flowlets", "stretched"):
        assert any(measure(result).get(name) for result in results), name


def test_one_name_is_one_number(results: list[Result]) -> None:
    """Of every row of a table, every summary row and what claims are computed from."""
    groups = comparison_groups(results)
    rows = {row["scheme"]: row for row in make_table(groups).rows}
    for result, row in zip(results, summarise(groups), strict=True):
        values = measure(result)
        assert {name: value.value for name, value in row.metrics.items()} == values
        cells = rows[result.label]
        assert {name: cells[name] for name in values} == values


def test_the_summary_agrees(results: list[Result]) -> None:
    """Where summary.json has a number under the name of a metric, it is that one."""
    compared = set()
    for result in results:
        summary = result.summary
        from_summary: dict[str, Any] = {
            name: getattr(part, name)
            for part in (summary, summary.packets)
            for name in METRICS
            if isinstance(getattr(part, name, None), int | float)
        }
        values = measure(result)
        compared |= from_summary.keys() & values.keys()
        assert {name: from_summary[name] for name in from_summary.keys() & values.keys()} == {
            name: pytest.approx(values[name]) for name in from_summary.keys() & values.keys()
        }
    assert {"out_of_order_share", "out_of_order_raw_share", "timeouts", "drains", "path_changes"} <= compared


def test_columns_are_metrics() -> None:
    assert set(SHOWN) <= set(METRICS)
    columns = {column.name for column in possible_columns()}
    assert set(METRICS) <= columns
    assert {column.name for column in COLUMNS} <= columns
    assert "fct_p99_of_bystander" in columns
    assert "lost_of_bystander" not in columns


def test_stored_runs_have_these_names() -> None:
    """And all of them: what a run measures, or null."""
    computed = {name for name in metrics() if METRICS[name].compute is not None}
    records, bad = Store(STORED).every()
    assert not bad
    gone = {"fct_floor", "slowdown_floor"}
    for record in records[::40]:
        names = {split_class(name)[0] for name in record.metrics}
        assert computed - OF_USERS <= names <= computed | gone, record.run


def test_json_has_the_names(results: list[Result]) -> None:
    """A row of a table as JSON."""
    row = json.loads(json.dumps(make_table(comparison_groups(results[1:2])).rows[0]))
    assert row["lost"] == measure(results[1])["lost"] > 0
