# SPDX-License-Identifier: Apache-2.0
"""Lock and cooperative scheduler of a device: one event loop serves all clients.

One lock serialises Writes, Reads and SetForwardingPipelineConfig (P4Runtime specification 5.3, 12.2, 13.4). A
request that takes longer than a quantum of work (context.py) pauses between two quanta, so that the loop
handles other calls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tailrace.p4rt.status import P4RtError
from tailrace.switch.p4runtime.context import Work

YIELD_DIVISOR = 8
"""After a long quantum a request pauses for the quantum's duration divided by this number, as other calls
take several iterations of the event loop.
"""
MAX_YIELD_S = 0.05
"""Longest pause."""


class StateLock:
    """A lock for one writer or several readers, granted in the order of the requests."""

    def __init__(self) -> None:
        self._queue: dict[asyncio.Future[None], bool] = {}  # requests in order, holders first; value: shared

    @asynccontextmanager
    async def hold(self, *, shared: bool = False, most_s: float | None = None) -> AsyncIterator[None]:
        """Holds the lock within the context; after `most_s` seconds of waiting, enters without the lock."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue[granted] = shared
        self._grant()
        try:
            if not granted.done():
                await asyncio.wait({granted}, timeout=most_s)
            yield
        finally:
            del self._queue[granted]
            self._grant()

    def _grant(self) -> None:
        """Grants the lock to the first request; if that is shared, also to the shared requests after it."""
        for position, (granted, shared) in enumerate(self._queue.items()):
            if position and not shared:
                return
            if not granted.done():
                granted.set_result(None)
            if not shared:
                return

    def has_waiters(self) -> bool:
        """Whether a request waits."""
        return any(not granted.done() for granted in self._queue)


class Scheduler:
    """Interleaves the quanta of one server's requests."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._last_pause_s = time.thread_time()

    async def pause(self) -> None:
        """Lets the loop serve other calls: one iteration, or a fraction of the duration of a long quantum.

        An event loop with its own clock belongs to a simulation, in which work takes no time.
        """
        async with self._lock:  # first come, first served
            slice_s = time.thread_time() - self._last_pause_s
            is_long = slice_s > YIELD_DIVISOR / 1000  # the pause is longer than 1 ms
            in_real_time = type(asyncio.get_running_loop()).time is asyncio.BaseEventLoop.time
            await asyncio.sleep(min(slice_s / YIELD_DIVISOR, MAX_YIELD_S) if is_long and in_real_time else 0)
            self._last_pause_s = time.thread_time()

    async def run(self, steps: Work) -> None:
        """Runs all steps; pauses after each."""
        try:
            for _ in steps:
                await self.pause()
        finally:
            steps.close()

    async def run_shielded(self, steps: Work, most_s: float) -> None:
        """Like `run`, but if the task is cancelled, the steps continue for up to `most_s`.

        Raises:
            CancelledError: the task was cancelled; raised after the steps.
        """
        time_s = asyncio.get_running_loop().time
        ends_s = None
        try:
            for _ in steps:
                if ends_s is not None and time_s() > ends_s:
                    break
                try:
                    await self.pause()
                except asyncio.CancelledError:
                    ends_s = ends_s or time_s() + most_s
        except P4RtError:
            if ends_s is None:  # else the client has disconnected
                raise
        finally:
            steps.close()
        if ends_s is not None:
            raise asyncio.CancelledError
