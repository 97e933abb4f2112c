# SPDX-License-Identifier: Apache-2.0
"""Stored runs instead of new ones: a task whose specs a stored run has is not run.

Runs of earlier code are used, too. How many there are is said, and stands on the page; `--again` runs all of
them once more, and says which results have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import UnsetType

from tailrace.experiments.plan.identity import run_id_of
from tailrace.results.atomic_folder import atomic_folder, refuse_links
from tailrace.results.result import SUMMARY, Result, to_json
from tailrace.study.pool import OnResult, TaskOutcomes, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.store.record import Record, differences, record_of
from tailrace.study.store.store import Store
from tailrace.study.task import Task, code_of

_MOST_NAMED = 3
"""Names of metrics that differ in a message."""


def stored_runs(store: Store, tasks: Iterable[Task], needs: Sequence[str] = ()) -> dict[str, Record]:
    """The stored runs of tasks, by the keys of these.

    Args:
        store: the finished runs.
        tasks: of any code.
        needs: metrics that must have been computed for a run.

    Raises:
        FileError: a file of the store cannot be read, or a line in it is invalid.
    """
    records = {}
    for task in tasks:
        stored = store.of(task.experiment.scheme.partition(":")[0])
        record = stored.get(run_id_of(task.experiment))
        if record is not None and record.knows(needs):
            records[task.key] = record
    return records


def run_stored(
    tasks: Sequence[Task],
    store: Store,
    root: Path,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    needs: Sequence[str] = (),
) -> tuple[TaskOutcomes, str]:
    """Run the tasks without a stored run, and add their results to the store.

    Args:
        tasks: all tasks.
        store: the finished runs.
        root: the folder of the runs' folders; stored runs have summary.json only.
        where: who runs tasks.
        display: shows the progress.
        again: run all tasks, stored runs or not.
        needs: metrics that must have been computed for a run.

    Returns:
        The outcome of each task, and the note of a page on runs of earlier code; empty where there are none.

    Raises:
        SpecError: the store or the cluster cannot be used, or a result cannot be written.
        RunError: a line cannot be written.
    """
    refuse_links(root, (task.out for task in tasks if not (root / task.out / SUMMARY).exists()))
    stored = {} if again else stored_runs(store, tasks, needs)
    earlier = {task.key for task in tasks if task.key in stored and not _is_current(stored[task.key], task)}
    if earlier:
        display.say(f"{len(earlier)} stored runs are of earlier code: --again runs them again")
    missing = [task for task in tasks if task.key not in stored]
    ends = run_all(missing, root, where, display, again=again, on_result=store_writer(store, display))
    for task in tasks:
        if task.key in stored:
            ends[task.key] = stored[task.key].result(task)
            _write_summary(stored[task.key].result(task), root / task.out)
    note = f"{len(earlier)} of {len(ends)} runs were made by earlier code." if earlier else ""
    return {task.key: ends[task.key] for task in tasks}, note


def _is_current(record: Record, task: Task) -> bool:
    """Whether the code of today has given a stored result."""
    return code_of(task.experiment) in record.ran


def store_writer(store: Store, display: Display) -> OnResult:
    """Returns a function that adds each result to a store, and reports those that differ from the stored."""

    def write(task: Task, result: Result) -> None:
        if isinstance(result.summary.trace_sha256, UnsetType):
            return
        record = record_of(task, result)
        before = store.add(record)
        unlike = [] if before is None else differences(before, record)
        if before is not None and unlike:
            names = ", ".join(unlike[:_MOST_NAMED]) + (", …" if len(unlike) > _MOST_NAMED else "")
            whose = "the same" if record.code in before.ran else "earlier"
            display.warn(f"{task.label}: {names}: not as the stored run of {whose} code, which is replaced")

    return write


def _write_summary(result: Result, folder: Path) -> None:
    """Writes the summary of a stored run, unless its folder has one."""
    if not (folder / SUMMARY).exists():
        with atomic_folder(folder) as partial:
            (partial / SUMMARY).write_text(to_json(result.summary), "utf-8")
