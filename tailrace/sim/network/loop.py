# SPDX-License-Identifier: Apache-2.0
"""An asyncio event loop on the virtual clock of a network.

    loop = VirtualLoop(network)
    loop.run_ready(lambda: loop.create_task(controller.run()))   # runs all callbacks that are ready
    network.run()                                           # timers of the loop fire during the run
    loop.end()

The loop uses Python's tasks and futures. `time` is the network's virtual time. Where Python's loop waits for
files and timers, this loop returns, and the network calls it when its next timer is due. It waits for nothing
outside the process and uses no threads (`run_in_executor` calls the function at once), so a seed repeats a
run exactly. The loop runs briefly for each message: one iteration of Python's standard loop, made for
sockets, would cost a quarter of such a run.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Protocol

from tailrace.spec.constants import NS_PER_S

_RESOLUTION_S = 0.5e-9
"""Timers that are due within this time (half a nanosecond) fire now, because the network counts whole
nanoseconds. Later ones are scheduled at least 1 ns ahead, so no rounding can leave a timer unscheduled.
"""


class VirtualClock(Protocol):
    """A virtual clock, which stops during calls; implemented by sim.network.Network."""

    @property
    def now_ns(self) -> int:
        """Time, from 0."""
        ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls `callback` at a time; now if it is None or past."""
        ...


async def _close(generator: AsyncGenerator[Any, Any]) -> None:
    await generator.aclose()


class _Timer(asyncio.TimerHandle):
    """A timer. While `_scheduled` is set, asyncio notifies the loop if the timer is cancelled."""

    _scheduled: bool


_MOST_CANCELS = 100
"""How often remaining tasks are cancelled at the end. There is a limit because the exception of a signal may
have hit a task between two steps; then nothing can end that task.
"""

_MOST_CANCELLED = 100
"""Cancelled timers are removed from the heap when there are more than this and they are the majority."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that runs within `run_ready`, and whenever one of its timers is due."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._armed_ns: int | None = None
        self._active = False
        self._soon: deque[asyncio.Handle] = deque()
        self._timers: list[_Timer] = []
        self._cancelled = 0
        super().__init__()

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._clock.now_ns / NS_PER_S

    def is_running(self) -> bool:
        """Whether `run_ready` is being executed."""
        return self._active

    # Python 3.10 has no TypeVarTuple, which asyncio's types use for the arguments
    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedules a callback for the current call of `run_ready`, or else the next one."""
        self._check()
        handle = asyncio.Handle(callback, args, self, context)
        self._soon.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Calls `callback` at a time in seconds."""
        self._check()
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._timers, timer)
        timer._scheduled = True
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Calls `callback` after `delay` seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _check(self) -> None:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:  # noqa: ARG002 - as asyncio calls
        self._cancelled += 1

    def run_in_executor(  # type: ignore[override]
        self,
        executor: Executor | None,  # noqa: ARG002 - as all loops have it
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Calls `func` at once; returns a future that is done."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)
        return future

    def run_ready(self, callback: Callable[[], object] | None = None) -> None:
        """Runs a callback, and all callbacks and timers that are due at this virtual time.

        If `run_ready` is already being executed, it only schedules the callback.
        """
        if callback is not None:
            self.call_soon(callback)
        if self._active:
            return
        # in a notebook another loop is running, which waits for this call
        outer, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, self._close_generator)
        events._set_running_loop(self)
        self._active = True
        try:
            self._run_all()
        finally:
            self._active = False
            events._set_running_loop(outer)
            sys.set_asyncgen_hooks(*hooks)
        if self._timers:
            wait_s = self._timers[0].when() - self.time()
            self._arm(self._clock.now_ns + max(1, round(wait_s * NS_PER_S)))

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Closes an asynchronous generator that is no longer referenced."""
        if not self.is_closed():
            self.call_soon(lambda: self.create_task(_close(generator)))

    def _run_all(self) -> None:
        """Runs all callbacks and timers that are due, and those that they schedule for now."""
        soon, timers = self._soon, self._timers
        due_s = self.time() + _RESOLUTION_S
        while True:
            if self._cancelled > _MOST_CANCELLED and 2 * self._cancelled > len(timers):
                timers[:] = [timer for timer in timers if not timer.cancelled()]
                heapq.heapify(timers)
                self._cancelled = 0
            while timers and (timers[0].cancelled() or timers[0].when() < due_s):
                timer = heapq.heappop(timers)
                timer._scheduled = False
                if timer.cancelled():
                    self._cancelled -= 1
                else:
                    soon.append(timer)
            if not soon:
                return
            for _ in range(len(soon)):
                handle = soon.popleft()
                if not handle.cancelled():
                    handle._run()

    def end(self) -> None:
        """Cancels all remaining tasks, lets them clean up, and closes the loop."""
        for _ in range(_MOST_CANCELS):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.run_ready()
        self._soon.clear()
        self._timers.clear()
        self.close()

    def _arm(self, time_ns: int) -> None:
        """Schedules `_timer_due` at a time, unless it is scheduled earlier."""
        if self._armed_ns is None or time_ns < self._armed_ns:
            self._armed_ns = time_ns
            self._clock.call_at(time_ns, lambda: self._timer_due(time_ns))

    def _timer_due(self, time_ns: int) -> None:
        """Runs due timers, unless an earlier timer has replaced this timer."""
        if self._armed_ns == time_ns and not self.is_closed():
            self._armed_ns = None
            self.run_ready()
