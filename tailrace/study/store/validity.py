# SPDX-License-Identifier: Apache-2.0
"""Which finished runs stand for tasks, and what must be run before others may.

A run stands for a task of the same words that has the same key: the same code and compiled program. Where the
code has changed since, what it gives may have changed or not. So of the runs of a kind - a scheme, with one
program, by the same code - one in ten is run again, at least one, chosen by a hash of their words and the new
code, so that another change chooses others. If all of these leave the traces and numbers that they left
before, the rest stand for their tasks, too; if one does not, all of them are run again.

Nothing is written about the rest: that they stand follows from the lines of those that were run again, which
name both codes (record.py).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UnsetType

from tailrace.results.atomic_folder import refuse_links, staged
from tailrace.results.result import SUMMARY, Result, to_json
from tailrace.study.pool import Ends, Settled, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.store.record import Record, differences, record_of
from tailrace.study.store.store import Store
from tailrace.study.task import Failed, Task, code_of, files_of, run_id, words_of

ONE_IN = 10

Kind = tuple[str, str, str]
"""Runs that stand or fall together: the scheme, the code that first made them (its name is one with that of
the program), and the present code."""

_TOLD = 3
"""Names of what differs."""


@dataclass(slots=True)
class Survey:
    """What a store says of some tasks.

    held: runs by the same code, by the keys of their tasks
    kept: runs by earlier code that stand, because those of `sample` were run again with the same result
    sample: how many those are, of all pages together
    again: tasks that must be run again before it is known whether those of `waiting` have to be
    missing: all other tasks, of which `changed` says how many have been run, by scheme, with another result
    than now
    """

    held: dict[str, Record] = field(default_factory=dict)
    kept: dict[str, Record] = field(default_factory=dict)
    sample: int = 0
    again: list[Task] = field(default_factory=list)
    waiting: list[Task] = field(default_factory=list)
    missing: list[Task] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)

    @property
    def standing(self) -> dict[str, Record]:
        """The runs that stand for tasks, by key."""
        return self.held | self.kept

    def note(self) -> str:
        """What a page says of runs that were kept; empty where none was."""
        if not self.kept:
            return ""
        found = len(self.held) + len(self.kept)
        return (
            f"{len(self.kept)} of {found} runs were made by earlier code, and stand because {self.sample} of "
            "their kind, chosen by a hash, were run again by the present code and left the same traces and "
            "numbers."
        )


def survey(
    store: Store,
    tasks: Iterable[Task],
    needs: Sequence[str] = (),
    failed: frozenset[str] = frozenset(),
) -> Survey:
    """What stands for tasks.

    Args:
        store: the finished runs.
        tasks: of those with one key one counts.
        needs: metrics that a run must have been looked at for.
        failed: keys of tasks that could not be run again.

    Raises:
        FileError: a file of the store cannot be read, or a line in it is none.
    """
    found = Survey()
    groups: dict[Kind, list[tuple[Task, Record]]] = defaultdict(list)
    for task in {task.key: task for task in tasks}.values():
        scheme = task.experiment.scheme.partition(":")[0]
        record = store.of(scheme).get(run_id(words_of(task.experiment), files_of(task.experiment)))
        if record is None or not record.knows(needs):
            found.missing.append(task)
        else:
            groups[scheme, record.code, code_of(task.experiment)].append((task, record))
    for (scheme, then, now), members in groups.items():
        every = store.of(scheme).values()
        found.held |= {task.key: record for task, record in members if now in record.ran}
        rest = [(task, record) for task, record in members if now not in record.ran]
        if not rest:
            continue
        witnesses = sum(record.code == then and now in record.ran for record in every)
        chosen = _chosen([record.run for _, record in rest], now, least=0 if witnesses else 1)
        again = [task for task, record in rest if record.run in chosen]
        broken = any(now in record.ran and then in record.differs for record in every)
        if broken or any(task.key in failed for task in again):
            found.missing += [task for task, _ in rest]
            found.changed[scheme] = found.changed.get(scheme, 0) + len(rest)
        elif again or not witnesses:
            found.again += again
            found.waiting += [task for task, record in rest if record.run not in chosen]
        else:
            found.kept |= {task.key: record for task, record in rest}
            found.sample += witnesses
    return found


def _chosen(runs: Sequence[str], now: str, least: int) -> frozenset[str]:
    """One in ten of some runs, at least so many, by a hash of their names and of the code."""
    numbers = {run: int(hashlib.sha256(f"{run} {now}".encode()).hexdigest(), 16) for run in runs}
    ordered = sorted(numbers, key=lambda run: numbers[run])
    found = [run for run in ordered if numbers[run] % ONE_IN == 0]
    return frozenset(found or ordered[:least])


def keeper(store: Store, display: Display, sample: frozenset[str] = frozenset()) -> Settled:
    """What puts each result into a store as it comes; `sample` are keys of tasks for whose kind it stands."""

    def keep(task: Task, result: Result) -> None:
        if isinstance(result.summary.trace_sha256, UnsetType):
            return
        record = record_of(task, result)
        before, _ = store.add(record, of_a_sample=task.key in sample)
        unlike = [] if before is None else differences(before, record)
        if before is None or not unlike:
            return
        names = ", ".join(unlike[:_TOLD]) + (", …" if len(unlike) > _TOLD else "")
        if record.code in before.ran:
            display.warn(f"{task.label}: {names}: not as the stored run of the same code, which is replaced")
        elif task.key in sample:
            display.say(f"{task.label}: {names}: not as the stored run of earlier code")

    return keep


def run_stored(
    tasks: Sequence[Task],
    store: Store,
    root: Path,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    needs: Sequence[str] = (),
) -> tuple[Ends, Survey]:
    """Run what no finished run stands for, add it to the store, and say what came of all.

    Args:
        tasks: what is wanted.
        store: the finished runs.
        root: folders of what is run lie below it; of other runs it gets summary.json.
        where: who runs tasks.
        display: shows how far they are.
        again: run everything, whatever stands for it.
        needs: metrics that a run must have been looked at for.

    Returns:
        What became of each task, and what the store says of them in the end.

    Raises:
        SpecError: the store or the cluster cannot be used, or a result cannot be written.
        RunError: a line cannot be written.
    """
    refuse_links(root, (task.out for task in tasks if not (root / task.out / SUMMARY).exists()))
    ends: Ends = {}
    now = Survey(missing=list(tasks)) if again else survey(store, tasks, needs)
    told = set[str]()
    while todo := [task for task in (*now.again, *now.missing) if task.key not in ends]:
        if not again:
            _tell(now, told, display)
        sample = frozenset(task.key for task in now.again)
        ends |= run_all(todo, root, where, display, again=again, settled=keeper(store, display, sample))
        failed = frozenset(key for key, end in ends.items() if isinstance(end, Failed))
        now = survey(store, tasks, needs, failed)
    for task in tasks:
        record = now.standing.get(task.key)
        if record is not None and not isinstance(ends.get(task.key), Result):
            if task.key not in ends:
                _write_summary(record.result(task), root / task.out)
            ends[task.key] = record.result(task)
    return {task.key: ends[task.key] for task in tasks}, now


def _tell(now: Survey, told: set[str], display: Display) -> None:
    """Says what is run again, and why."""
    for scheme, count in now.changed.items():
        if scheme not in told:
            told.add(scheme)
            display.say(
                f"{scheme}: the code has changed what runs give: all {count} that stood are run again"
            )
    if now.again:
        schemes = ", ".join(dict.fromkeys(task.experiment.scheme.partition(":")[0] for task in now.again))
        count = len(now.again) + len(now.waiting)
        display.say(f"stored runs of earlier code: {count}; run again first: {len(now.again)} ({schemes})")


def _write_summary(result: Result, folder: Path) -> None:
    """What is known of a run, where others have everything; nothing where it is there."""
    if not (folder / SUMMARY).exists():
        with staged(folder) as partial:
            (partial / SUMMARY).write_text(to_json(result.summary), "utf-8")
