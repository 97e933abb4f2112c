# SPDX-License-Identifier: Apache-2.0
"""Runs tasks in processes of this machine.

If a process dies, perhaps for lack of memory, the tasks that were running are run again. Any of these tasks
may be the cause, so each of them runs alone, and a task whose process dies again has failed. The processes
(workers) end when their parent process ends, even if the parent is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import ModuleType

from tailrace.results.result import Result
from tailrace.study.signals import end_with
from tailrace.study.task import Failed, Task

TaskOutcome = tuple[Task, "Result | Failed"]
Run = Callable[[Task], "Result | Failed"]

DIED = Failed("a worker process has died, perhaps for lack of memory")


def in_processes(
    tasks: Sequence[Task], workers: int, run: Run, warn: Callable[[str], None]
) -> Iterator[TaskOutcome]:
    """Yields each task with its result or failure, in the order of completion.

    Args:
        tasks: the tasks to run, at least one.
        workers: the number of processes.
        run: runs a task; a function of a module, so that it can be pickled.
        warn: called with a line of text when tasks are run again.
    """
    waiting = deque(tasks)
    while waiting:
        interrupted = yield from _in_pool(waiting, workers, run)
        if interrupted:
            warn(f"{DIED.reason}; run again: {', '.join(task.name for task in interrupted)}")
        for task in interrupted:
            if (yield from _in_pool(deque([task]), 1, run)):
                yield task, DIED


def _in_pool(waiting: deque[Task], workers: int, run: Run) -> Generator[TaskOutcome, None, list[Task]]:
    """Runs the tasks of `waiting`, removes each when it starts, and yields outcomes.

    Returns:
        the tasks that were running when a process died; empty if none died.
    """
    earlier_children = set(multiprocessing.active_children())
    with _without_interrupts():
        pool = ProcessPoolExecutor(
            min(workers, len(waiting)),
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(os.getpid(),),
        )
    running: dict[Future[Result | Failed], Task] = {}
    try:
        while waiting or running:
            with _without_interrupts(), _without_main():
                while waiting and len(running) < workers:
                    # at most one task per worker, so that all submitted tasks are running
                    future = pool.submit(run, waiting[0])
                    running[future] = waiting.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = future.result()
                yield running.pop(future), outcome
    except BrokenProcessPool:
        return list(running.values())
    except BaseException:
        # otherwise pool.shutdown would wait for running tasks
        for child in set(multiprocessing.active_children()) - earlier_children:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return []


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Blocks SIGINT and SIGHUP. Processes that start within the block inherit the signal mask, so these
    signals do not end a worker that still imports modules and has not run `_begin`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        # the resource tracker unblocks SIGINT in this process when it starts, so start it before blocking
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that start within the block do not import the main module. Tasks need no objects of that
    module, and a script without `if __name__ == "__main__":` would run again in each process.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(parent: int) -> None:
    """Initialises a worker, which ends when its parent does, and so ignores SIGINT.

    Args:
        parent: the process id of the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
