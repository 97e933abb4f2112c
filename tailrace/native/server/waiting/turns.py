# SPDX-License-Identifier: Apache-2.0
"""Who may work when much is asked for: between two slices of anybody's long work all others are served.

One event loop serves all clients, so whoever works longer than a slice waits here before the next. Slices of
several clients alternate, and between any two the loop handles whatever is small.
"""

from __future__ import annotations

import asyncio

from tailrace.native.server.context import Work


class Turns:
    """The slices of one server."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def next(self) -> None:
        async with self._lock:  # first come, first served
            await asyncio.sleep(0)

    async def all(self, steps: Work) -> None:
        """Does all steps, each in a turn of its own."""
        try:
            for _ in steps:
                await self.next()
        finally:
            steps.close()
