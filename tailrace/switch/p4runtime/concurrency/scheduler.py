# SPDX-License-Identifier: Apache-2.0
"""Who may work when much is asked for: between two slices of anybody's long work all others are served.

One event loop serves all clients, so whoever works longer than a slice waits here before the next. Slices of
several clients alternate, and between any two the loop handles whatever is small.
"""

from __future__ import annotations

import asyncio
import time

from tailrace.p4rt.status import P4RtError
from tailrace.switch.p4runtime.context import Work

YIELD_DIVISOR = 8
"""After a slice others have a part of the time that it took: a call takes several rounds of the loop."""
MAX_YIELD_S = 0.05
"""Of that."""


class Scheduler:
    """The slices of one server."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._worked_s = time.thread_time()

    async def pause(self) -> None:
        """Lets others work: for a round of the loop, and after a long slice for a part of its time.

        A loop with another clock than the machine's is a simulation, in which work takes no time.
        """
        async with self._lock:  # first come, first served
            slice_s = time.thread_time() - self._worked_s
            is_long = slice_s > YIELD_DIVISOR / 1000
            in_real_time = type(asyncio.get_running_loop()).time is asyncio.BaseEventLoop.time
            await asyncio.sleep(min(slice_s / YIELD_DIVISOR, MAX_YIELD_S) if is_long and in_real_time else 0)
            self._worked_s = time.thread_time()

    async def run(self, steps: Work) -> None:
        """Does all steps, each in a turn of its own."""
        try:
            for _ in steps:
                await self.pause()
        finally:
            steps.close()

    async def run_shielded(self, steps: Work, most_s: float) -> None:
        """The same, and who waits may be cancelled: the steps go on, for `most_s` at most.

        Raises:
            CancelledError: when they have ended, or the time has.
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
            if ends_s is None:  # else nobody is there to be told
                raise
        finally:
            steps.close()
        if ends_s is not None:
            raise asyncio.CancelledError
