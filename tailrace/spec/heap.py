# SPDX-License-Identifier: Apache-2.0
"""Memory trim for long-running processes: glibc does not return freed memory in the middle of the heap.

glibc also has an arena for each thread, which keeps freed memory. One arena is enough, because Python runs
one thread at a time. With other C libraries these functions do nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
from typing import Any

_M_ARENA_MAX = -8
_EVERY_S = 10.0

SOON_S = 2.0
"""Delay between the freeing of much memory and the trim."""


def _function(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None)


def share_one_heap() -> None:
    """Makes all threads share one heap. To be called before threads are started."""
    limit = _function("mallopt")
    if limit is not None:
        limit(_M_ARENA_MAX, 1)


def trim() -> None:
    """Returns free memory to the system; takes some milliseconds, in which other threads may run."""
    malloc_trim = _function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


async def keep_trimmed() -> None:
    """Trims every _EVERY_S seconds, until cancelled."""
    while True:
        await asyncio.sleep(_EVERY_S)
        trim()


class Trimmer:
    """Trims SOON_S after much memory was freed, and again SOON_S later, because connections are freed after
    their streams.
    """

    def __init__(self) -> None:
        self._times = 0
        self._timer: asyncio.TimerHandle | None = None

    def trim_soon(self) -> None:
        """To be called after much memory was freed, in an event loop."""
        self._times = 2
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SOON_S, self._trim)

    def _trim(self) -> None:
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, trim)
        self._times -= 1
        self._timer = loop.call_later(SOON_S, self._trim) if self._times else None
