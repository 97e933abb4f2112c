# SPDX-License-Identifier: Apache-2.0
"""The name of a metric is one number, in tables and in papers: both are asked about the same runs."""

from __future__ import annotations

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.measure import METRICS
from tailrace.results.result import Result
from tailrace.results.table import COLUMNS, measured
from tailrace.sim.run import VirtualBackend
from tailrace.study.run import run

RUNS = {
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
    },
}
"""Small, and together they measure whatever has a name in both places."""

IN_TABLES = {text: column.name for column in COLUMNS for text in (column.title, column.name)}
SHARED = sorted(IN_TABLES.keys() & METRICS.keys())
"""Names that stand in tables, as a column's name or title, and are names of papers' metrics."""

TWO_NUMBERS = ("lost", "out_of_order", "recirculations")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    made = []
    for label, words in RUNS.items():
        planned = plan(make(words), "virtual")
        made.append(run(planned, VirtualBackend(), lambda _progress: None, label=label))
    return made


def numbers(results: list[Result], name: str) -> list[tuple[float, float]]:
    """What tables and papers say, of each run in which both say something."""
    compute = METRICS[name].compute
    assert compute is not None
    pairs = [(measured(result.summary)[IN_TABLES[name]], compute(result)) for result in results]
    return [
        (float(table), float(paper))
        for table, paper in pairs
        if isinstance(table, (int, float)) and paper is not None
    ]


def test_the_names_are_many_and_measured(results: list[Result]) -> None:
    """Otherwise the comparison below would be about nothing."""
    assert {"lost", "recirculations", "pauses", "timeouts", "path_changes", "utilisation"} <= set(SHARED)
    assert all(numbers(results, name) for name in SHARED)
    for name in ("lost", "recirculations", "out_of_order", "pauses", "flowlets"):
        assert any(paper for _, paper in numbers(results, name)), name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.xfail(
                name in TWO_NUMBERS,
                strict=True,
                raises=AssertionError,
                reason="the registry of metrics comes with the rebuilt results",
            ),
        )
        for name in SHARED
    ],
)
def test_one_name_is_one_number(results: list[Result], name: str) -> None:
    for table, paper in numbers(results, name):
        assert table == pytest.approx(paper)
