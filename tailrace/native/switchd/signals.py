# SPDX-License-Identifier: Apache-2.0
"""What the process does at signals, from its first moment to its last.

SIGTERM, SIGINT and SIGHUP end it, once and within a moment, whatever is under way; more change nothing.
SIGUSR1 writes the statistics where they are wanted. SIGUSR2 and SIGPIPE do nothing.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)
LATEST_S = 0.8
"""So long after the first signal the process ends, come what may."""


class EndedError(BaseException):
    """A signal came while the switch was starting; no Exception, so that nobody takes it for a failure."""


class Signals:
    """The signals of this process. Make it in the main thread."""

    def __init__(self, last_resort: Callable[[], None]) -> None:
        """`last_resort` ends the process when it does not end by itself; it is called in another thread."""
        self._last_resort = last_resort
        self._ended: Callable[[], None] | None = None
        self._got = False
        self._before = {number: signal.getsignal(number) for number in (*ENDING, *IGNORED)}
        for number in ENDING:
            signal.signal(number, self._end)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def __enter__(self) -> Signals:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the signals as they were before, for whoever called the command from Python."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._got:
            return
        self._got = True
        timer = threading.Timer(LATEST_S, self._last_resort)
        timer.daemon = True
        timer.start()
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
        """From now on the process is ending anyway."""
        self._got = True

    def report_with(self, report: Callable[[], None]) -> None:
        """Calls `report` at SIGUSR1, between two of the event loop's callbacks."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, report)
