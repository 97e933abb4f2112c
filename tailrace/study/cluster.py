# SPDX-License-Identifier: Apache-2.0
"""Runs tasks on a Dask cluster."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tailrace.results.result import Result
from tailrace.sim.errors import RunError
from tailrace.spec import SpecError
from tailrace.study.progress import Display
from tailrace.study.task import Failed, Task

CONNECT_S = 10
"""Time in s within which a cluster's scheduler must answer."""

NO_WORKER_S = 60.0
"""Time in s for which a cluster may have no worker before its waiting tasks fail."""

LOOK_S = 1.0
"""Interval in s at which the workers of a cluster are counted while no task ends."""


def on_cluster(
    tasks: Sequence[Task], address: str, run: Callable[[Task], Result | Failed], display: Display
) -> Iterator[tuple[Task, Result | Failed]]:
    """Yields each task with its result or failure, in the order of completion.

    Args:
        address: the scheduler's address.
        run: runs a task; a function of a module, so that it can be pickled.

    Raises:
        SpecError: the scheduler cannot be reached.
        RunError: the cluster had no worker for too long, or its scheduler stopped answering.
    """
    distributed = _distributed()
    try:
        # a client with an invalid address would hang when it is destroyed
        distributed.comm.get_address_host_port(address)
    except ValueError as error:
        raise SpecError(f"cluster {address}: expected HOST:PORT or tcp://HOST:PORT: {error}") from error
    if "://" in address and not address.startswith("tcp://"):
        raise SpecError(f"cluster {address}: expected HOST:PORT or tcp://HOST:PORT")
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SpecError(f"cluster {address}: no Dask scheduler answers: {error}") from error
    with client, client.as_current():
        futures = {client.submit(run, task, key=f"tailrace-{task.key}", pure=False): task for task in tasks}
        try:
            for future in _as_completed(client, distributed, list(futures), address, display):
                yield futures[future], _fetched(future)
        except BaseException:
            client.cancel(list(futures), force=True)
            raise


def _as_completed(
    client: Any, distributed: Any, futures: list[Any], address: str, display: Display
) -> Iterator[Any]:
    """Yields the futures in the order of completion.

    Raises:
        RunError: the cluster had no worker for too long, or its scheduler does not answer.
    """
    waiting = set(futures)
    without_workers_s: float | None = None
    while waiting:
        ended = {future for future in waiting if future.done()}
        waiting -= ended
        yield from ended
        if ended or not waiting:
            continue
        try:
            distributed.wait(list(waiting), timeout=LOOK_S, return_when="FIRST_COMPLETED")
            without_workers_s = None
            continue
        except (TimeoutError, asyncio.TimeoutError):
            pass
        if _workers(client, address):
            without_workers_s = None
            continue
        now_s = time.monotonic()
        if without_workers_s is None:
            without_workers_s = now_s
            display.warn(f"cluster {address}: there is no worker; waiting {NO_WORKER_S:g} s for one")
        elif now_s - without_workers_s > NO_WORKER_S:
            raise RunError(
                f"cluster {address}: no worker for {NO_WORKER_S:g} s; {len(waiting)} runs are left"
            )


def _workers(client: Any, address: str) -> int:
    """The number of workers that the cluster has now.

    Raises:
        RunError: its scheduler does not answer.
    """
    try:
        return len(client.nthreads())
    except (OSError, TimeoutError, asyncio.TimeoutError, RuntimeError) as error:
        raise RunError(f"cluster {address}: the scheduler does not answer: {error}") from error


def _fetched(future: Any) -> Result | Failed:
    """The result of a future; the task has failed if its worker died or has no Tailrace installed."""
    if future.status == "finished":
        result: Result | Failed = future.result()
        return result
    error = future.exception()
    return Failed(f"the worker failed: {type(error).__name__}: {error}")


def _distributed() -> Any:
    """Dask's library, which only clusters need."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise SpecError("--cluster needs Dask: install tailrace[cluster]") from None
