# SPDX-License-Identifier: Apache-2.0
"""An asyncio event loop whose time is a network's, so that what waits in it waits in virtual time.

    loop = VirtualLoop(network)
    loop.turn(lambda: loop.create_task(controller.run()))   # runs all that can run now
    network.run()                                           # timers of the loop fire on the way
    loop.end()

It is Python's own loop but for two things: `time` is the network's, and where Python's waits for files and
timers this one ends its turn and has the network call it back. Nothing outside the process is waited for, and
no thread takes part (`run_in_executor` calls at once), so a seed repeats a run exactly.
"""

from __future__ import annotations

import asyncio
import selectors
from asyncio import events
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Protocol

from tailrace.words.constants import NS_PER_S

_RESOLUTION_S = 0.5e-9
"""Timers that are due within this time fire now: the network counts whole nanoseconds. What is due after more
than half of it is waited for, so that no rounding can leave a timer that neither fires nor is waited for.
"""


class Clock(Protocol):
    """A clock that stands still while anybody is called: native.virtual.Network is one."""

    @property
    def now_ns(self) -> int:
        """Time, from 0."""
        ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls back at a time; now where it is None or past."""
        ...


class _Nothing(selectors.BaseSelector):
    """Files that are never ready; tells when the loop has nothing to do, and how long (None: for ever)."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}
        self.idle: Callable[[float | None], None] = lambda _wait_s: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._keys[fileobj] = selectors.SelectorKey(fileobj, fd, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > _RESOLUTION_S / 2:
            self.idle(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs in turns: `turn`, and whenever one of its timers is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wait_s: float | None = None
        self._armed_ns: int | None = None
        idle = _Nothing()
        super().__init__(idle)
        self._clock_resolution = _RESOLUTION_S
        idle.idle = self._idle

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._clock.now_ns / NS_PER_S

    def run_in_executor(  # type: ignore[override]  # Python 3.10 has no TypeVarTuple
        self,
        executor: Executor | None,  # noqa: ARG002 - as all loops have it
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Calls at once; the future is done."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - who waits for the result is told
            future.set_exception(error)
        return future

    def turn(self, callback: Callable[[], object] | None = None) -> None:
        """Calls back in the loop, and runs until nothing is left that can run at this time.

        Within a turn, `callback` is called later in that turn.
        """
        if callback is not None:
            self.call_soon(callback)
        if self.is_running():
            return
        # a notebook has a loop of its own, which waits for this call
        outer = events._get_running_loop()
        events._set_running_loop(None)
        try:
            self.run_forever()
        finally:
            events._set_running_loop(outer)
        if self._wait_s is not None:
            self._arm(self._clock.now_ns + max(1, round(self._wait_s * NS_PER_S)))

    def end(self) -> None:
        """Cancels all that still waits, lets it clean up, and closes the loop."""
        while tasks := asyncio.all_tasks(self):
            for task in tasks:
                task.cancel()
            self.turn()
        self.close()

    def _idle(self, wait_s: float | None) -> None:
        self._wait_s = wait_s
        self.stop()

    def _arm(self, time_ns: int) -> None:
        if self._armed_ns is None or time_ns < self._armed_ns:
            self._armed_ns = time_ns
            self._clock.call_at(time_ns, lambda: self._woken(time_ns))

    def _woken(self, time_ns: int) -> None:
        """A timer is due, unless it was cancelled meanwhile or an earlier one has come between."""
        if self._armed_ns == time_ns and not self.is_closed():
            self._armed_ns = None
            self.turn()
