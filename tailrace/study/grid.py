# SPDX-License-Identifier: Apache-2.0
"""A grid of runs, and how to run it; `repeat`, `compare`, `sweep` and the papers' figures are grids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tailrace.experiments.plan.axes import Setting
from tailrace.results.results import RESULTS, LeftOut, Results, Run, set_aside, write_results
from tailrace.sim.job import REAL_TIME
from tailrace.spec import SpecError
from tailrace.study.pool import OnResult, TaskOutcomes, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.task import Failed, Task


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of a study.

    axes: the values of each axis
    runs: in the order of the axes, each with its value on every axis; a Task is still to be run, a Run has
        failed already because it cannot run on its network
    first, over_seeds, left_out, command: see Results
    """

    axes: Mapping[str, tuple[Setting, ...]]
    runs: tuple[tuple[Mapping[str, Setting], Task | Run], ...]
    first: str = ""
    over_seeds: bool = True
    left_out: tuple[LeftOut, ...] = ()
    command: str = ""

    @property
    def tasks(self) -> list[Task]:
        """The tasks to run."""
        return [task for _, task in self.runs if isinstance(task, Task)]

    def results(self, outcomes: TaskOutcomes) -> Results:
        """The results of the grid, from the outcomes of its tasks."""
        runs = tuple(_with_outcome(settings, run, outcomes) for settings, run in self.runs)
        return Results(self.axes, runs, self.first, self.over_seeds, self.left_out, self.command)


def run_grid(
    grid: Grid,
    folder: Path | None,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    pcap: bool = False,
    on_result: OnResult | None = None,
) -> Results:
    """Run a grid, and write its results into a folder. Other runs continue if one fails.

    In virtual time, a run whose result is already in the folder is not repeated, since it would be equal. In
    real time this holds only for an interrupted study, whose folder has no `results.json` yet. Results of an
    earlier command that would be lost are moved to a folder of their own.

    Args:
        grid: what to run.
        folder: for the results; None: nothing is written.
        where: the workers that run it.
        display: shows the progress.
        again: whether finished runs are repeated, too.
        pcap: whether every link is captured, to `pcap` in the folder; with one worker only.
        on_result: is called with each result.

    Raises:
        SpecError: the target does not support the experiment, or the folder cannot be written.
        RunError: a cluster has lost all its workers.
    """
    tasks = grid.tasks
    if folder is not None and tasks:
        in_real_time = any(task.experiment.target in REAL_TIME for task in tasks)
        measured_again = in_real_time and (folder / RESULTS).exists()
        staying = {(str(task.out), task.key) for task in tasks if again or not measured_again}
        set_aside(folder, staying, display.say)
        again = again or measured_again
    outcomes = run_all(tasks, folder, where, display, again=again or pcap, pcap=pcap, on_result=on_result)
    failed = [outcome for outcome in outcomes.values() if isinstance(outcome, Failed)]
    if failed and len(failed) == len(outcomes) and all(outcome.bad_input for outcome in failed):
        raise SpecError(failed[0].reason)
    done = grid.results(outcomes)
    if folder is not None:
        write_results(done, folder)
    return done


def _with_outcome(settings: Mapping[str, Setting], run: Task | Run, outcomes: TaskOutcomes) -> Run:
    """A run with its outcome. Equal tasks share an outcome, but each run has its own case and label."""
    if isinstance(run, Run):
        return run
    outcome = outcomes[run.key]
    if isinstance(outcome, Failed):
        return Run(settings, str(run.out), None, outcome.reason)
    return Run(settings, str(run.out), replace(outcome, case=run.case, label=run.label))
