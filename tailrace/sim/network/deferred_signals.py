# SPDX-License-Identifier: Apache-2.0
"""Defers signals while a network runs: handlers run after it has stopped.

NICs are compiled by mypyc. The compiled code treats any exception within integer arithmetic as a lack of
memory and aborts the process; but Python may run a signal handler, which can raise, within the arithmetic of
large ints.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_RAISING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
"""Signals whose handlers may raise: Python's own handlers, and those of the command line and of users."""


class DeferredSignals:
    """A context in which a signal that comes while the network runs stops the network; its handler runs after
    that. The handler of a second signal runs at once, because a NIC may hang. In threads other than the main
    thread the context does nothing: Python runs no handlers there.
    """

    def __init__(self, running: Callable[[], bool], stop: Callable[[], None]) -> None:
        """`running` returns whether the network runs; `stop` makes the network stop soon."""
        self._running = running
        self._stop = stop
        self._pending: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> DeferredSignals:
        with contextlib.suppress(ValueError):  # not the main thread
            for number in _RAISING:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._defer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ValueError):
            for number, handler in self._handlers.items():
                # unless a handler has installed another one meanwhile
                if signal.getsignal(number) == self._defer:
                    signal.signal(number, handler)
        self.run_handlers()

    def _defer(self, number: int, frame: FrameType | None) -> None:
        if self._pending or not self._running():
            self._handlers[number](number, frame)
            return
        self._pending.append(number)
        self._stop()

    def run_handlers(self) -> bool:
        """Calls the handlers of deferred signals, which may raise; returns whether there were any."""
        pending, self._pending = self._pending, []
        for number in pending:
            self._handlers[number](number, None)
        return bool(pending)
