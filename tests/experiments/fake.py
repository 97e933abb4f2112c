# SPDX-License-Identifier: Apache-2.0
"""A backend that runs nothing: it answers with records that a test has chosen."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tailrace.experiments.plan.experiment import Experiment
from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.results.results import Results
from tailrace.sim.job import Job
from tailrace.sim.outcome import Outcome, Progress, Report
from tailrace.study.grid import Grid, run_grid
from tailrace.study.grids import comparison_grid, plans
from tailrace.study.pool import Where
from tailrace.study.progress import Display


def record(flow: FlowSpec, fct_ns: int | None = 1_000_000, **changes: int) -> FlowRecord:
    """What became of a flow that sent 100 packets, with changes."""
    values = {
        "packets": 100,
        "retransmitted": 0,
        "out_of_order": 0,
        "ood_max": 0,
        "path_changes": 0,
        "drains": 0,
        "drained_ns": 0,
        "received": 100,
        "first_received": 100,
    } | changes
    end_ns = None if fct_ns is None else flow.start_ns + fct_ns
    return FlowRecord(flow.id, flow.src, flow.dst, flow.bytes, flow.start_ns, end_ns, **values)


@dataclass
class FakeBackend:
    """`answer` makes the outcome of a job; `jobs` are those it was given."""

    answer: Callable[[Job], Outcome]
    jobs: list[Job] = field(default_factory=list)

    def run(self, job: Job, report: Report) -> Outcome:
        self.jobs.append(job)
        report(Progress("traffic", 0, len(job.flows)))
        outcome = self.answer(job)
        report(Progress("traffic", len(job.flows), len(job.flows)))
        return outcome


def run_on(backend: FakeBackend, grid: Grid, folder: Path | None = None, *, again: bool = False) -> Results:
    """The results of a grid whose runs the backend answers, written into a folder if there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailrace.study.task.backend_of", lambda _target: backend)
        return run_grid(grid, folder, Where(), Display(io.StringIO()), again=again)


def compare_on(
    backend: FakeBackend,
    base: Experiment,
    schemes: Sequence[str],
    *,
    target: str = "virtual",
    folder: Path | None = None,
    again: bool = False,
) -> Results:
    """The comparison of schemes whose runs the backend answers."""
    planned = plans(base, schemes, target)
    return run_on(backend, comparison_grid(planned, base.seeds, first=planned[0][0]), folder, again=again)
