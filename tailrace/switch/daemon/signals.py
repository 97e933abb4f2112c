# SPDX-License-Identifier: Apache-2.0
"""Signal handlers of the process, from its start to its exit.

SIGTERM, SIGINT and SIGHUP stop it within LATEST_S; further ones change nothing. SIGUSR1 writes the
statistics, if configured. SIGUSR2 and SIGPIPE are ignored.

Python runs handlers in the main thread, which may wait for the data plane, and that for a packet. So another
thread reads each signal from a pipe, and exits the process if the main thread does not.
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
LATEST_S = 0.8
"""Longest time from the first signal to the exit."""


class EndedError(BaseException):
    """A signal during the start; no Exception, so that no handler takes it for a failure."""


class SignalHandlers:
    """The signals of this process. Make it in the main thread."""

    def __init__(self, last_resort: Callable[[], None]) -> None:
        """`last_resort` exits the process if the main thread does not; it is called in another thread."""
        self._last_resort = last_resort
        self._ended: Callable[[], None] | None = None
        self._got = self._left = False
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
        """Restores the handlers, for callers from Python."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._left = True
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._wakeup_write)

    def _wait(self) -> None:
        """Exits the process LATEST_S after the first signal, unless the context is left before."""
        while (number := os.read(self._wakeup_read, 1)) and number[0] not in ENDING:
            pass
        if number:
            time.sleep(LATEST_S)
        if number and not self._left:
            self._last_resort()
        os.close(self._wakeup_read)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._got:
            return
        self._got = True
        if self._ended is None:
            raise EndedError
        self._ended()

    def serving(self) -> asyncio.Event:
        """An event of the running loop that is set when a signal comes, instead of an exception."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end() -> None:
            loop.call_soon_threadsafe(ended.set)

        self._ended = end
        return ended

    def served(self) -> None:
        """The process is stopping: further signals are ignored."""
        self._got = True

    def report_with(self, report: Callable[[], None]) -> None:
        """Calls `report` at SIGUSR1, between two of the event loop's callbacks."""
        loop = asyncio.get_running_loop()
        # not by add_signal_handler, which would replace the wakeup descriptor
        signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(report))
