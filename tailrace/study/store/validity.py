# SPDX-License-Identifier: Apache-2.0
"""Decides which stored results are still valid.

A stored run is valid for a task with the same specs and the same key: the same code and compiled program.
After a change of the code its result may have changed or not. So of the runs of a kind (a scheme with one
program, by the same code) one in ten is run again, at least one, chosen by a hash of their specs and the new
code, so that each change draws another sample. If all of these have the same traces and numbers as before,
the rest is valid, too, and reused; if one has not, all of them are run again.

Nothing is written about the rest: their validity follows from the records of the sample, which have the
hashes of both codes (record.py).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UnsetType

from tailrace.results.atomic_folder import atomic_folder, refuse_links
from tailrace.results.result import SUMMARY, Result, to_json
from tailrace.study.pool import OnResult, TaskOutcomes, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.store.record import Record, differences, record_of
from tailrace.study.store.store import Store
from tailrace.study.task import Failed, Task, code_of, files_of, run_id, specs_of

ONE_IN = 10

Kind = tuple[str, str, str]
"""Runs that are valid together: the scheme, the code that first made them (its hash includes the program's),
and the present code."""

_MOST_NAMED = 3
"""Names of metrics that differ in a message."""


@dataclass(slots=True)
class Validity:
    """The validity of stored runs for some tasks.

    current: runs by the same code, by the keys of their tasks
    reused: valid runs by earlier code: those of `sample` were run again with the same result
    sample: the number of these, of all pages together
    again: tasks of the sample, which must be run before `waiting` is decided
    missing: all other tasks; `changed` counts, by scheme, those with a stored run whose result has changed
    """

    current: dict[str, Record] = field(default_factory=dict)
    reused: dict[str, Record] = field(default_factory=dict)
    sample: int = 0
    again: list[Task] = field(default_factory=list)
    waiting: list[Task] = field(default_factory=list)
    missing: list[Task] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)

    @property
    def valid(self) -> dict[str, Record]:
        """The valid runs, by the keys of their tasks."""
        return self.current | self.reused

    def note(self) -> str:
        """The note of a page on reused runs; empty where there are none."""
        if not self.reused:
            return ""
        total = len(self.current) + len(self.reused)
        return (
            f"{len(self.reused)} of {total} runs were made by earlier code, and stand because {self.sample} "
            "of their kind, chosen by a hash, were run again by the present code and left the same traces "
            "and numbers."
        )


def check_validity(
    store: Store,
    tasks: Iterable[Task],
    needs: Sequence[str] = (),
    failed: frozenset[str] = frozenset(),
) -> Validity:
    """The validity of stored runs for tasks.

    Args:
        store: the finished runs.
        tasks: of those with one key one counts.
        needs: metrics that must have been computed for a run.
        failed: keys of tasks that could not be run again.

    Raises:
        FileError: a file of the store cannot be read, or a line in it is invalid.
    """
    validity = Validity()
    groups: dict[Kind, list[tuple[Task, Record]]] = defaultdict(list)
    for task in {task.key: task for task in tasks}.values():
        scheme = task.experiment.scheme.partition(":")[0]
        record = store.of(scheme).get(run_id(specs_of(task.experiment), files_of(task.experiment)))
        if record is None or not record.knows(needs):
            validity.missing.append(task)
        else:
            groups[scheme, record.code, code_of(task.experiment)].append((task, record))
    for (scheme, then, now), members in groups.items():
        every = store.of(scheme).values()
        validity.current |= {task.key: record for task, record in members if now in record.ran}
        rest = [(task, record) for task, record in members if now not in record.ran]
        if not rest:
            continue
        witnesses = sum(record.code == then and now in record.ran for record in every)
        chosen = _chosen([record.run for _, record in rest], now, least=0 if witnesses else 1)
        again = [task for task, record in rest if record.run in chosen]
        broken = any(now in record.ran and then in record.differs for record in every)
        if broken or any(task.key in failed for task in again):
            validity.missing += [task for task, _ in rest]
            validity.changed[scheme] = validity.changed.get(scheme, 0) + len(rest)
        elif again or not witnesses:
            validity.again += again
            validity.waiting += [task for task, record in rest if record.run not in chosen]
        else:
            validity.reused |= {task.key: record for task, record in rest}
            validity.sample += witnesses
    return validity


def _chosen(runs: Sequence[str], now: str, least: int) -> frozenset[str]:
    """One in ten of some runs, at least `least`, by a hash of their ids and of the code."""
    numbers = {run: int(hashlib.sha256(f"{run} {now}".encode()).hexdigest(), 16) for run in runs}
    ordered = sorted(numbers, key=lambda run: numbers[run])
    sample = [run for run in ordered if numbers[run] % ONE_IN == 0]
    return frozenset(sample or ordered[:least])


def store_writer(store: Store, display: Display, sample: frozenset[str] = frozenset()) -> OnResult:
    """Returns a function that adds each result to a store; `sample`: the keys of the sample's tasks."""

    def write(task: Task, result: Result) -> None:
        if isinstance(result.summary.trace_sha256, UnsetType):
            return
        record = record_of(task, result)
        before, _ = store.add(record, of_a_sample=task.key in sample)
        unlike = [] if before is None else differences(before, record)
        if before is None or not unlike:
            return
        names = ", ".join(unlike[:_MOST_NAMED]) + (", …" if len(unlike) > _MOST_NAMED else "")
        if record.code in before.ran:
            display.warn(f"{task.label}: {names}: not as the stored run of the same code, which is replaced")
        elif task.key in sample:
            display.say(f"{task.label}: {names}: not as the stored run of earlier code")

    return write


def run_stored(
    tasks: Sequence[Task],
    store: Store,
    root: Path,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    needs: Sequence[str] = (),
) -> tuple[TaskOutcomes, Validity]:
    """Run the tasks without a valid stored run, and add their results to the store.

    Args:
        tasks: all tasks.
        store: the finished runs.
        root: the folder of the runs' folders; reused runs have summary.json only.
        where: who runs tasks.
        display: shows the progress.
        again: run all tasks, valid runs or not.
        needs: metrics that must have been computed for a run.

    Returns:
        The outcome of each task, and the validity of the stored runs in the end.

    Raises:
        SpecError: the store or the cluster cannot be used, or a result cannot be written.
        RunError: a line cannot be written.
    """
    refuse_links(root, (task.out for task in tasks if not (root / task.out / SUMMARY).exists()))
    ends: TaskOutcomes = {}
    now = Validity(missing=list(tasks)) if again else check_validity(store, tasks, needs)
    reported = set[str]()
    while todo := [task for task in (*now.again, *now.missing) if task.key not in ends]:
        if not again:
            _report(now, reported, display)
        sample = frozenset(task.key for task in now.again)
        ends |= run_all(
            todo, root, where, display, again=again, on_result=store_writer(store, display, sample)
        )
        failed = frozenset(key for key, end in ends.items() if isinstance(end, Failed))
        now = check_validity(store, tasks, needs, failed)
    for task in tasks:
        record = now.valid.get(task.key)
        if record is not None and not isinstance(ends.get(task.key), Result):
            if task.key not in ends:
                _write_summary(record.result(task), root / task.out)
            ends[task.key] = record.result(task)
    return {task.key: ends[task.key] for task in tasks}, now


def _report(now: Validity, reported: set[str], display: Display) -> None:
    """Reports which tasks are run again, and why."""
    for scheme, count in now.changed.items():
        if scheme not in reported:
            reported.add(scheme)
            display.say(
                f"{scheme}: the code has changed what runs give: all {count} that stood are run again"
            )
    if now.again:
        schemes = ", ".join(dict.fromkeys(task.experiment.scheme.partition(":")[0] for task in now.again))
        count = len(now.again) + len(now.waiting)
        display.say(f"stored runs of earlier code: {count}; run again first: {len(now.again)} ({schemes})")


def _write_summary(result: Result, folder: Path) -> None:
    """Writes the summary of a reused run, unless its folder has one."""
    if not (folder / SUMMARY).exists():
        with atomic_folder(folder) as partial:
            (partial / SUMMARY).write_text(to_json(result.summary), "utf-8")
