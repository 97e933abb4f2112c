# SPDX-License-Identifier: Apache-2.0
"""Stopping cleanly on SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Makes the kernel kill this process when its parent, process `parent`, ends for any reason."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # the parent had ended before prctl
        os.kill(os.getpid(), signal.SIGKILL)


class Interrupted(KeyboardInterrupt):
    """A signal requested the program to stop. It is a KeyboardInterrupt, which event loops do not catch."""

    def __init__(self, number: int) -> None:
        """Store the number of the signal."""
        super().__init__()
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Within the block, the first signal of _SIGNALS raises Interrupted. Later signals are ignored, so that
    clean-up can finish. SIGHUP stays ignored if it was ignored before, as under nohup.

    Raises:
        Interrupted: in the main thread, at the statement that runs when the signal arrives.
    """
    stopping = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            raise Interrupted(number)

    handles_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    numbers = _SIGNALS if handles_hangup else _SIGNALS[:-1]  # without SIGHUP
    before = [(number, signal.signal(number, stop)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
