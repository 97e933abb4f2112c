# SPDX-License-Identifier: Apache-2.0
"""Writes a page that replays runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from tailrace.experiments.plan.experiment_file import read_option_string
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result
from tailrace.sim.job import Job, read_job
from tailrace.spec import SpecError
from tailrace.spec.atomic import write_output
from tailrace.spec.errors import UnitError
from tailrace.spec.units import parse_time_ns
from tailrace.study.progress import Display

MOST_RUNS = 2


def view(
    *results: Result, path: str | os.PathLike[str], state: Sequence[str] = (), progress: IO[str] | None = None
) -> None:
    """Write a page that replays a run, or two runs of the same traffic beside each other.

    The page is one file, which contains everything that it shows and needs no network.

    Args:
        results: one or two runs with a record (`record="events"` or `"packets"`; `sample="5us"` for queues).
        path: the file.
        state: virtual times, such as `100us`, at which the page has the tables of the switches and Flowcut's
            flows; for these, the runs are repeated.
        progress: where the progress of repeated runs is shown.

    Raises:
        SpecError: a run without a record, runs that differ in more than the scheme, or an invalid argument.
        RunError: a repeated run is not the same.
    """
    # imported late, as what only this function needs
    from tailrace.viewer.data import run_data
    from tailrace.viewer.page import render
    from tailrace.viewer.state import read_state

    if not 1 <= len(results) <= MOST_RUNS:
        raise SpecError(
            f"view: expected one run, or two of the same traffic; found {len(results)}: name a case or runs"
        )
    if len({(each.summary.topology, each.case, *_traffic(each)) for each in results}) > 1:
        raise SpecError("view: the two runs differ in more than the scheme: network, case or flows")
    try:
        stops_ns = sorted({parse_time_ns(text) for text in state})
    except UnitError as error:
        raise SpecError(f"--state: {error}") from error
    jobs = [_job_of(result, repeats=bool(stops_ns)) for result in results]
    data = []
    for result, job in zip(results, jobs, strict=True):
        with Display(progress).run(result.label) if stops_ns else nullcontext(print) as report:
            stops = read_state(result, job, stops_ns, report) if stops_ns else []
        data.append(run_data(result, job, stops))
    write_output(Path(path), render(" and ".join(result.label for result in results), data))


def _traffic(result: Result) -> list[tuple[object, ...]]:
    return sorted((row.id, row.src, row.dst, row.bytes) for row in result.rows)


def _job_of(result: Result, *, repeats: bool) -> Job:
    """The job of a run: from its specs if it `repeats`, else the stored one, since files that specs name may
    have gone. Raises SpecError if it has no record, or these cannot be used.
    """
    title = f"view: {result.label}, case {result.case}"
    if result.timelines.record is None:
        raise SpecError(f"{title}, has no record: run it again with --record events --sample 5us")
    if result.job is not None and not repeats:
        return result.job if isinstance(result.job, Job) else read_job(result.job)
    try:
        return plan(read_option_string(result.summary.option_string), result.summary.target).job
    except SpecError as error:
        raise SpecError(f"{title}: its specs: {error}") from error
