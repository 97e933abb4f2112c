# SPDX-License-Identifier: Apache-2.0
"""Runs tasks in processes of this machine.

Tasks of a process that dies, for lack of memory perhaps, are run again. Any task that was under way may have
been the cause, so these run one by one, and a task whose process dies once more has failed. Workers end with
their parent process, also where it is killed.
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
    """Each task with its result or failure, in the order of completion.

    Args:
        tasks: at least one.
        workers: so many processes at a time.
        run: runs a task; a function of a module.
        warn: is called with a line where a task is run again.
    """
    waiting = deque(tasks)
    while waiting:
        died = yield from _in_pool(waiting, workers, run)
        if died:
            warn(f"{DIED.reason}; run again: {', '.join(task.name for task in died)}")
        for task in died:
            if (yield from _in_pool(deque([task]), 1, run)):
                yield task, DIED


def _in_pool(waiting: deque[Task], workers: int, run: Run) -> Generator[TaskOutcome, None, list[Task]]:
    """The ends of waiting tasks, which are taken from there; in the end those that a dead process was at."""
    earlier = set(multiprocessing.active_children())
    with _without_interrupts():
        pool = ProcessPoolExecutor(
            min(workers, len(waiting)),
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(os.getpid(),),
        )
    under_way: dict[Future[Result | Failed], Task] = {}
    try:
        while waiting or under_way:
            with _without_interrupts(), _without_main():
                while waiting and len(under_way) < workers:
                    # no more than are at work, so that it is known which those are
                    future = pool.submit(run, waiting[0])
                    under_way[future] = waiting.popleft()
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                end = future.result()
                yield under_way.pop(future), end
    except BrokenProcessPool:
        return list(under_way.values())
    except BaseException:
        # what runs would otherwise be waited for
        for child in set(multiprocessing.active_children()) - earlier:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return []


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Within the block Ctrl-C waits, and the end of the terminal. Processes that are started there never get
    them, also not while they import what they need, before they can say that they are not for them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        # it would be started within the block, and let Ctrl-C through again; that it ignores itself
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that are started within the block do not import the program that we are part of: nothing in
    a task is of it, and a script without `if __name__ == "__main__":` would run once more in each.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(parent: int) -> None:
    """Ctrl-C is for the process that asked; it ends its workers itself, or they end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
