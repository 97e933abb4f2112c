# SPDX-License-Identifier: Apache-2.0
"""Uses stored runs instead of new runs: a task is not run if the store has a run of the same specs.

Stored runs of earlier code are used, too; their number is reported and shown on the page of results.
`--again` runs all tasks again and reports which results have changed.
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
"""Most names of differing metrics in a message."""


def stored_runs(store: Store, tasks: Iterable[Task], needs: Sequence[str] = ()) -> dict[str, Record]:
    """The stored runs of tasks, by the tasks' keys.

    Args:
        store: the finished runs.
        tasks: the tasks to look up; a stored run may be of other code.
        needs: metrics that must have been computed for a stored run.

    Raises:
        FileError: a file of the store cannot be read, or a row in it is invalid.
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
        root: the folder of the runs' folders; stored runs get a folder with summary.json only.
        where: the workers that run tasks.
        display: shows the progress.
        again: run all tasks, even those with a stored run.
        needs: metrics that must have been computed for a stored run.

    Returns:
        The outcome of each task by its key, and a note for the page about runs of earlier code, or "".

    Raises:
        SpecError: the store or the cluster cannot be used, or a result cannot be written.
        RunError: a run cannot be written to the store.
    """
    refuse_links(root, (task.out for task in tasks if not (root / task.out / SUMMARY).exists()))
    stored = {} if again else stored_runs(store, tasks, needs)
    earlier = {task.key for task in tasks if task.key in stored and not _is_current(stored[task.key], task)}
    if earlier:
        display.say(f"{len(earlier)} stored runs were made by earlier code: --again runs them again")
    missing = [task for task in tasks if task.key not in stored]
    outcomes = run_all(missing, root, where, display, again=again, on_result=store_writer(store, display))
    for task in tasks:
        if task.key in stored:
            outcomes[task.key] = stored[task.key].result(task)
            _write_summary(stored[task.key].result(task), root / task.out)
    note = f"{len(earlier)} of {len(outcomes)} runs were made by earlier code." if earlier else ""
    return {task.key: outcomes[task.key] for task in tasks}, note


def _is_current(record: Record, task: Task) -> bool:
    """Whether the present code produced the stored result."""
    return code_of(task.experiment) in record.ran


def store_writer(store: Store, display: Display) -> OnResult:
    """Returns a function that adds a result to the store, and warns if the stored run differs."""

    def write(task: Task, result: Result) -> None:
        if isinstance(result.summary.trace_sha256, UnsetType):
            return
        record = record_of(task, result)
        before = store.add(record)
        unlike = [] if before is None else differences(before, record)
        if before is not None and unlike:
            names = ", ".join(unlike[:_MOST_NAMED]) + (", …" if len(unlike) > _MOST_NAMED else "")
            whose = "the same" if record.code in before.ran else "earlier"
            display.warn(f"{task.label}: {names}: not equal to the stored run of {whose} code, now replaced")

    return write


def _write_summary(result: Result, folder: Path) -> None:
    """Writes the summary of a stored run, unless the run's folder has a summary."""
    if not (folder / SUMMARY).exists():
        with atomic_folder(folder) as partial:
            (partial / SUMMARY).write_text(to_json(result.summary), "utf-8")
