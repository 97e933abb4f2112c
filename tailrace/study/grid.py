# SPDX-License-Identifier: Apache-2.0
"""A grid of runs, and the way to run it: `repeat`, `compare`, `sweep` and papers make one each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tailrace.experiments.plan.axes import Setting
from tailrace.results.results import RESULTS, LeftOut, Results, Run, write_results
from tailrace.sim.job import REAL_TIME
from tailrace.spec import SpecError
from tailrace.study.pool import OnResult, TaskOutcomes, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.task import Failed, Task


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of a study.

    axes: the values of each axis
    runs: in the order of the axes, each with its value of each; those that cannot run are failed runs
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
        """What is to be run."""
        return [task for _, task in self.runs if isinstance(task, Task)]

    def results(self, ends: TaskOutcomes) -> Results:
        """The results of the grid, from the ends of its tasks by their keys."""
        runs = tuple(_ended(settings, run, ends) for settings, run in self.runs)
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
    """Run a grid, and write its results into a folder. A run that fails does not keep others from running.

    In virtual time a run that the folder has already is not run again: it would give the same. In real time
    that holds only for a study that was interrupted, of which the folder has no `results.json` yet.

    Args:
        grid: what to run.
        folder: for the results; None: nothing is written.
        where: who runs it.
        display: shows the progress.
        again: whether finished runs are run again, too.
        pcap: whether every link is captured, to `pcap` in the folder; with one worker only.
        on_result: is called with each result.

    Raises:
        SpecError: the target cannot do what is asked for, or the folder cannot be written.
        RunError: a cluster has lost all its workers.
    """
    tasks = grid.tasks
    if folder is not None and (folder / RESULTS).exists():
        again = again or any(task.experiment.target in REAL_TIME for task in tasks)
    ends = run_all(tasks, folder, where, display, again=again or pcap, pcap=pcap, on_result=on_result)
    failed = [end for end in ends.values() if isinstance(end, Failed)]
    if failed and len(failed) == len(ends) and all(end.bad_input for end in failed):
        raise SpecError(failed[0].reason)
    done = grid.results(ends)
    if folder is not None:
        report_removed(folder, write_results(done, folder), display)
    return done


def report_removed(folder: Path, runs: int, display: Display) -> None:
    """Reports that runs of an earlier command were removed."""
    if runs:
        display.say(f"{folder}: replaced {runs} {'run' if runs == 1 else 'runs'} of an earlier command")


def _ended(settings: Mapping[str, Setting], run: Task | Run, ends: TaskOutcomes) -> Run:
    """A run with its end; runs that are the same to a switch may differ in their labels."""
    if isinstance(run, Run):
        return run
    end = ends[run.key]
    if isinstance(end, Failed):
        return Run(settings, str(run.out), None, end.reason)
    return Run(settings, str(run.out), replace(end, case=run.case, label=run.label))
