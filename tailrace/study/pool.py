# SPDX-License-Identifier: Apache-2.0
"""Runs many tasks: one after the other in this process, in a pool of processes, or on a Dask cluster.

Workers return results to the calling process, which writes them, so workers need no common file system. The
other tasks continue if one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.results.atomic_folder import atomic_folder, check_place, refuse_links
from tailrace.results.result import Result
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.study.progress import Display
from tailrace.study.task import Failed, Task, attempt, finished, run_task, write_task_result

PCAP = "pcap"
"""The folder of captures, within that of the results."""

MOST_WORKERS = 1024
"""Most worker processes on this machine."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where tasks run: in `workers` processes of this machine, or by the Dask scheduler at `cluster`."""

    workers: int = 1
    cluster: str | None = None


TaskOutcomes = dict[str, "Result | Failed"]
"""The result or failure of each task, by key."""

OnResult = Callable[[Task, Result], None]
"""Called once with each result, when its run ends or it is read from its folder."""


def run_all(
    tasks: Sequence[Task],
    root: Path | None,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    pcap: bool = False,
    on_result: OnResult | None = None,
) -> TaskOutcomes:
    """Run every task whose result is not below `root` yet, and write the results there.

    Args:
        tasks: what to run; of tasks with the same key only the first is run, and all get its result.
        root: the folder of the tasks' folders; None: nothing is read or written.
        where: the workers that run them.
        display: shows the progress.
        again: also run finished tasks.
        pcap: capture every link, to PCAP below `root`; with one worker only.
        on_result: is called with each result, including those read from folders.

    Raises:
        SpecError: the cluster cannot be reached, or a result cannot be written.
    """
    if pcap and (where.workers > 1 or where.cluster is not None):
        raise SpecError("--pcap: links are captured with one worker only")
    if pcap and root is None:
        raise SpecError("pcap: captures need a folder; give `out`")
    outcomes: TaskOutcomes = {}
    waiting: dict[str, Task] = {}
    folders: dict[str, dict[Path, Task]] = {}
    damaged: list[FileError] = []
    for task in tasks:
        result = None if again or root is None else finished(task, root, damaged)
        if result is not None:
            if on_result is not None and task.key not in outcomes:
                on_result(task, result)
            outcomes[task.key] = result
        else:
            waiting.setdefault(task.key, task)
            folders.setdefault(task.key, {})[task.out] = task
    if waiting and root is not None:
        check_place(root)
        refuse_links(root, (folder for of_key in folders.values() for folder in of_key))
    if damaged:
        more = f", and {len(damaged) - 1} others" if len(damaged) > 1 else ""
        display.warn(f"a result that cannot be used is run again: {damaged[0]}{more}")
    if outcomes:
        display.say(f"{len(outcomes)} of {len(outcomes) + len(waiting)} results were there already")
    captures = root / PCAP if pcap and root is not None else None
    for task, outcome in _outcomes(tuple(waiting.values()), where, display, captures):
        if isinstance(outcome, Result):
            if root is not None:
                for same in folders[task.key].values():
                    write_task_result(same, outcome, root)
            if on_result is not None:
                on_result(task, outcome)
        else:
            display.warn(f"{task.name}: {outcome.reason}")
        outcomes[task.key] = outcome
    return outcomes


def _outcomes(
    tasks: Sequence[Task], where: Where, display: Display, captures: Path | None = None
) -> Iterator[tuple[Task, Result | Failed]]:
    """Each task with its result or failure, in the order of completion."""
    if not tasks:
        return
    if where.cluster is None and where.workers == 1:
        for number, task in enumerate(tasks, start=1):
            with display.run(f"{number}/{len(tasks)} {task.name}") as report:
                if captures is None:
                    yield task, guarded(task, report)
                    continue
                with atomic_folder(captures / task.out) as folder:
                    outcome = guarded(task, report, folder)
                yield task, outcome
        return
    if where.workers > MOST_WORKERS:
        raise SpecError(f"--workers: expected at most {MOST_WORKERS}, found {where.workers}")
    if any(task.experiment.target != "virtual" for task in tasks):
        raise SpecError("several runs at a time would slow each other down in real time: use target virtual")
    # imported late: multiprocessing and asyncio are needed only here
    if where.cluster is None:
        from tailrace.study.processes import in_processes

        outcomes = in_processes(tasks, where.workers, guarded, display.warn)
    else:
        from tailrace.study.cluster import on_cluster

        outcomes = on_cluster(tasks, where.cluster, guarded, display)
    with display.count("runs", len(tasks)) as done:
        for task, outcome in outcomes:
            done(task.name)
            yield task, outcome


def guarded(task: Task, *arguments: Any) -> Result | Failed:
    """Runs a task; returns its result or failure, which can be pickled."""
    return attempt(lambda: run_task(task, *arguments))
