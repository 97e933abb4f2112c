# SPDX-License-Identifier: Apache-2.0
"""At 80 columns a table shows what its schemes are about."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tailrace.experiments.plan.experiment import make
from tailrace.results.estimates import comparison_groups
from tailrace.results.result import Result
from tailrace.results.summary import FLOWLETS_AT_LEAVES, Recirculations
from tailrace.results.table import make_table
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome
from tailrace.tables.table import TextTable, unstyled
from tests.experiments.fake import FakeBackend, compare_on, record

PFC = {"pauses": 1460, "mean_pause_ns": 20.2}
OF_RLB: dict[str, Any] = {
    "pfc": PFC,
    "rlb": {"warnings_sent": 14},
    "recirculations": Recirculations(843, 0.1, 9),
}
OF_HF2T: dict[str, Any] = {
    "pfc": PFC,
    "hf2t": {"stretched": 346},
    "flowlets": {FLOWLETS_AT_LEAVES: 462},
}


def answer(job: Job) -> Outcome:
    return Outcome(tuple(record(flow, 1_234_567) for flow in job.flows), wall_s=1.0)


def shown(count: int, labels: tuple[str, str], **about: Any) -> str:
    """The lines of a table of some runs without what the last one is about, which end with what is hidden."""
    base = make({"scheme": "ecmp", "topology": "leaf-spine:leaves=2,spines=2,hosts=2", "target": "virtual"})
    done = compare_on(FakeBackend(answer), base, ("ecmp", "letflow"))
    plain_run, last = done.results
    summary = structs.replace(last.summary, **about)
    results = [
        *(Result("clean", f"{labels[0]}{n or ''}", plain_run.summary, plain_run.rows) for n in range(count)),
        Result("clean", labels[1], summary, last.rows),
    ]
    lines = unstyled(TextTable(make_table(comparison_groups(results), labels[0]), 80).lines())
    assert max(map(len, lines.splitlines())) <= 80
    return lines


@pytest.mark.parametrize(
    ("labels", "about", "words", "columns"),
    [
        (
            ("letflow", "letflow+hf2t"),
            OF_HF2T,
            ("1,460", "462", "346"),
            {"slowdown_mean", "pauses", "flowlets", "stretched"},
        ),
        (
            ("drill", "rlb"),
            OF_RLB,
            ("1,460", "14", "843"),
            {"slowdown_mean", "fct_mean_ratio", "pauses", "warnings", "recirculations"},
        ),
        (
            ("ecmp", "flowcut"),
            {"flowcut": {"flowcut_drains": 49}},
            (),
            {"slowdown_mean", "fct_mean_ratio", "drains"},
        ),
    ],
)
def test_what_a_scheme_is_about_is_shown(
    labels: tuple[str, str], about: dict[str, Any], words: tuple[str, ...], columns: set[str]
) -> None:
    """HF2T's flowlets, RLB's warnings, Flowcut's drains; the slowdown always."""
    lines = shown(1, labels, **about)
    left_out = lines.partition("hidden: ")[2].replace("(-o wide)", "").replace("\n", " ")
    assert not columns & set(left_out.split(", "))
    assert all(word in lines for word in words)


def test_one_of_many_does_not_decide() -> None:
    """Beside many others, the ratio comes before what one is about."""
    lines = shown(5, ("ecmp", "rlb"), **OF_RLB)
    left_out = lines.partition("hidden: ")[2]
    assert "recirculations" in left_out
    assert "fct_mean_ratio" not in left_out


def test_the_ratio_is_shown_with_its_interval() -> None:
    """The case is hidden where all rows have the same; digits show on which side of 1 the ratio lies."""

    def of_seed(job: Job) -> Outcome:
        factor = 0.9985 - 0.0005 * (job.seed % 2) if job.scheme.name == "letflow" else 1
        fct_ns = round((1_000_000 + 400_000 * (job.seed % 2)) * factor)
        return Outcome(tuple(record(flow, fct_ns, drains=3) for flow in job.flows), wall_s=1.0)

    settings = {"topology": "leaf-spine:leaves=2,spines=2,hosts=2", "target": "virtual", "seed": "1..3"}
    base = make({"scheme": "ecmp", "fault": "link-slow:fraction=0.1,factor=0.5", **settings})
    for without_fault in (True, False):
        chosen = base.without("faults") if without_fault else base
        done = compare_on(FakeBackend(of_seed), chosen, ("ecmp", "letflow"))
        lines = unstyled(TextTable(done.table, 80).lines())
        assert max(map(len, lines.splitlines())) <= 80
        left_out = lines.partition("hidden: ")[2].replace("\n", " ").split(", ")
        assert "fct_mean_ratio" not in left_out
        assert ("case" in left_out) == without_fault
        assert "0.998" in lines
