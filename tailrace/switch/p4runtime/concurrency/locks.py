# SPDX-License-Identifier: Apache-2.0
"""Claims: requests that touch the same things are carried out as if one came after the other.

P4Runtime asks that of Writes (specification 12.2), of a Read beside them (13.4), and of a new primary (5.3).
A claim has some parts, each alone or with others that share it, and all of them at once; of each part who
came first is first. So nobody waits in a circle, and nobody for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from contextlib import asynccontextmanager

LockKey = Hashable


class LockRequest:
    """Parts of somebody's, alone or shared; `when_wanted` and `leave` are for who has them."""

    __slots__ = ("_contended", "_exclusive", "_missing", "_release", "_when_contended", "keys", "ready")

    def __init__(
        self,
        exclusive: Collection[LockKey],
        shared: Collection[LockKey],
        release: Callable[[LockRequest], None],
    ) -> None:
        self._exclusive = frozenset(exclusive)
        self.keys = self._exclusive.union(shared)
        self._missing = set(self.keys)
        self._release: Callable[[LockRequest], None] | None = release
        self._contended = False
        self._when_contended: Callable[[], None] | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._missing:
            self.ready.set_result(None)

    def exclusive(self, key: LockKey) -> bool:
        """Whether nobody else may have it meanwhile."""
        return key in self._exclusive

    def grant(self, key: LockKey) -> None:
        """It has the part, if it had it not."""
        self._missing.discard(key)
        if not self._missing and not self.ready.done():
            self.ready.set_result(None)

    def notify_waiter(self) -> None:
        """Somebody waits for one of its parts."""
        if not self._contended and self._release is not None:
            self._contended = True
            if self._when_contended is not None:
                self._when_contended()

    def when_contended(self, call: Callable[[], None]) -> None:
        """Calls this once when somebody waits for one of these parts, or now."""
        self._when_contended = call
        if self._contended:
            call()

    def release(self) -> None:
        """Others may have the parts."""
        release, self._release = self._release, None
        if release is not None:
            release(self)


class LockManager:
    """Of one device. Use it inside its event loop."""

    def __init__(self) -> None:
        self._queues: dict[LockKey, dict[LockRequest, None]] = {}

    @asynccontextmanager
    async def acquire(
        self,
        exclusive: Collection[LockKey] = (),
        shared: Collection[LockKey] = (),
        most_s: float | None = None,
    ) -> AsyncIterator[LockRequest]:
        """Around what is done with some parts; it begins when all of them are there, or after `most_s`."""
        request = LockRequest(exclusive, shared, self._released)
        for key in request.keys:
            self._queues.setdefault(key, {})[request] = None
            self._grant_next(key)
        try:
            if not request.ready.done():
                await asyncio.wait({request.ready}, timeout=most_s)
            yield request
        finally:
            request.release()

    def has_waiters(self) -> bool:
        """Whether somebody waits for a part."""
        return any(not request.ready.done() for queue in self._queues.values() for request in queue)

    def _released(self, request: LockRequest) -> None:
        for key in request.keys:
            queue = self._queues[key]
            del queue[request]
            if queue:
                self._grant_next(key)
            else:
                del self._queues[key]

    def _grant_next(self, key: LockKey) -> None:
        """Those that are first have it; if others wait, they are told."""
        queue = self._queues[key]
        holders: list[LockRequest] = []
        for request in queue:
            if holders and (request.exclusive(key) or holders[0].exclusive(key)):
                break
            holders.append(request)
            request.grant(key)
        if len(queue) > len(holders):
            for request in holders:
                request.notify_waiter()
