# SPDX-License-Identifier: Apache-2.0
"""A new primary comes after the Writes of the one before (specification 5.3), and before those after it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Takeovers:
    """Of one device, by role. Use it inside its event loop."""

    def __init__(self) -> None:
        self._writes: Counter[str] = Counter()
        self._coming: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def write(self, role: str) -> AsyncIterator[None]:
        """Around a Write; it begins when no takeover is coming."""
        await self._until(lambda: not self._coming[role])
        self._writes[role] += 1
        try:
            yield
        finally:
            self._less(self._writes, role)

    @asynccontextmanager
    async def takeover(self, role: str) -> AsyncIterator[None]:
        """Around the change of the primary; it begins when the Writes that have begun are done."""
        self._coming[role] += 1
        try:
            await self._until(lambda: not self._writes[role])
            yield
        finally:
            self._less(self._coming, role)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _less(self, counts: Counter[str], role: str) -> None:
        counts[role] -= 1
        if not counts[role]:
            del counts[role]  # names are the clients'
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
