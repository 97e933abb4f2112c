# SPDX-License-Identifier: Apache-2.0
"""Signals that come while a network runs: what their handlers raise waits until it has stopped.

NICs are compiled by mypyc, which takes every exception in arithmetic for want of memory and ends the process;
and Python runs handlers of signals within the arithmetic of large numbers.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_RAISING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
"""Whose handlers may raise: Python's own, and those of the command and of users."""


class HeldSignals:
    """The signals of this thread, if it is the main one: in others no handler runs."""

    def __init__(self, stop: Callable[[], None]) -> None:
        """Takes what has the network stop soon."""
        self._stop = stop
        self._came: list[int] = []
        self._handlers: dict[int, Any] = {}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block the handler of the first signal waits, which has the network stop. Another one
        does not wait: a NIC may hang.
        """
        self._handlers = {number: signal.getsignal(number) for number in _RAISING}
        changed = []
        try:
            for number, handler in self._handlers.items():
                if callable(handler):
                    signal.signal(number, self._hold)
                    changed.append(number)
        except ValueError:
            pass  # another thread
        try:
            yield
        finally:
            for number in changed:
                signal.signal(number, self._handlers[number])

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            self._handlers[number](number, frame)
            return
        self._came.append(number)
        self._stop()

    def let_go(self) -> bool:
        """Calls the handlers of the signals that came, which may raise; whether there were any."""
        came, self._came = self._came, []
        for number in came:
            self._handlers[number](number, None)
        return bool(came)
