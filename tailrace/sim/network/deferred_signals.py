# SPDX-License-Identifier: Apache-2.0
"""Defers signals while a network runs: handlers run after it has stopped.

NICs are compiled by mypyc, which takes every exception in arithmetic for want of memory and ends the process;
and Python runs handlers of signals within the arithmetic of large numbers.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_RAISING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
"""Whose handlers may raise: Python's own, and those of the command and of users."""


class DeferredSignals:
    """A context, within which a handler waits that would run while the network does. The network stops then;
    a second signal does not wait, for a NIC may hang. Signals are those of the main thread: in others no
    handler runs.
    """

    def __init__(self, running: Callable[[], bool], stop: Callable[[], None]) -> None:
        """Takes whether the network runs, and what has it stop soon."""
        self._running = running
        self._stop = stop
        self._came: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> DeferredSignals:
        with contextlib.suppress(ValueError):  # another thread
            for number in _RAISING:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._hold)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ValueError):
            for number, handler in self._handlers.items():
                # a handler may have put another one in its place
                if signal.getsignal(number) == self._hold:
                    signal.signal(number, handler)
        self.run_handlers()

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._came or not self._running():
            self._handlers[number](number, frame)
            return
        self._came.append(number)
        self._stop()

    def run_handlers(self) -> bool:
        """Calls the handlers of the signals that came, which may raise; whether there were any."""
        came, self._came = self._came, []
        for number in came:
            self._handlers[number](number, None)
        return bool(came)
