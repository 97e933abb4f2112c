# SPDX-License-Identifier: Apache-2.0
"""Signal handlers of the process, from its start to its exit.

SIGTERM, SIGINT and SIGHUP stop the process within LATEST_S; further signals have no effect. SIGUSR1 writes
the statistics, if --statistics is given. SIGUSR2 and SIGPIPE are ignored.

Python runs signal handlers in the main thread, which may be waiting for a lock that packet processing has.
So another thread reads the signals from a pipe, and exits the process if the main thread does not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)
"""Signals without effect; SIGUSR1 only until `report_with`."""
LATEST_S = 0.8
"""Longest time from the first signal to the exit."""


class EndedError(BaseException):
    """A signal came while the switch started. `except Exception` does not catch this exception."""


class SignalHandlers:
    """Installs the signal handlers of this process, for a `with` block. Create it in the main thread."""

    def __init__(self, exit_process: Callable[[], None]) -> None:
        """`exit_process` is called in another thread if the main thread does not stop in time."""
        self._exit_process = exit_process
        self._stop_serving: Callable[[], None] | None = None
        self._is_stopping = self._has_exited = False
        self._wakeup_read, self._wakeup_write = os.pipe()
        os.set_blocking(self._wakeup_write, False)
        self._wakeup_before = signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()
        self._before = {number: signal.getsignal(number) for number in (*ENDING, *IGNORED)}
        for number in ENDING:
            signal.signal(number, self._end)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def __enter__(self) -> SignalHandlers:
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the previous handlers, for Python code that calls `main`."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._has_exited = True
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._wakeup_write)

    def _wait(self) -> None:
        """Exits the process LATEST_S after the first signal, unless the `with` block is left before."""
        while (number := os.read(self._wakeup_read, 1)) and number[0] not in ENDING:
            pass
        if number:
            time.sleep(LATEST_S)
        if number and not self._has_exited:
            self._exit_process()
        os.close(self._wakeup_read)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._stop_serving is None:
            raise EndedError
        self._stop_serving()

    def end_event(self) -> asyncio.Event:
        """Returns an event. From now on, as the server runs, signals set it instead of raising EndedError."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end() -> None:
            loop.call_soon_threadsafe(ended.set)

        self._stop_serving = end
        return ended

    def ignore_from_now(self) -> None:
        """Ignores further signals, as the server has stopped."""
        self._is_stopping = True

    def report_with(self, report: Callable[[], None]) -> None:
        """From now on the event loop calls `report` on SIGUSR1."""
        loop = asyncio.get_running_loop()
        # loop.add_signal_handler would replace the wakeup descriptor
        signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(report))
