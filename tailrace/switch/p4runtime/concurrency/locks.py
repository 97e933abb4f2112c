# SPDX-License-Identifier: Apache-2.0
"""Exclusive and shared locks: requests for the same entities are serialised.

P4Runtime requires that of Writes (specification 12.2), of a Read beside them (13.4), and of a new primary
(5.3). A request acquires all its keys at once, and each key is granted in FIFO order: neither deadlock nor
starvation is possible.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from contextlib import asynccontextmanager

LockKey = Hashable


class LockRequest:
    """The keys of one request, exclusive or shared; its holder calls `when_contended` and `release`."""

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
        """Whether the key is locked exclusively."""
        return key in self._exclusive

    def grant(self, key: LockKey) -> None:
        """Grants a key, once or again."""
        self._missing.discard(key)
        if not self._missing and not self.ready.done():
            self.ready.set_result(None)

    def notify_waiter(self) -> None:
        """Another request waits for one of the keys."""
        if not self._contended and self._release is not None:
            self._contended = True
            if self._when_contended is not None:
                self._when_contended()

    def when_contended(self, call: Callable[[], None]) -> None:
        """Has `call` called once, when another request waits for one of the keys, or now."""
        self._when_contended = call
        if self._contended:
            call()

    def release(self) -> None:
        """Releases all keys."""
        release, self._release = self._release, None
        if release is not None:
            release(self)


class LockManager:
    """The locks of one device. Use it inside its event loop."""

    def __init__(self) -> None:
        self._queues: dict[LockKey, dict[LockRequest, None]] = {}

    @asynccontextmanager
    async def acquire(
        self,
        exclusive: Collection[LockKey] = (),
        shared: Collection[LockKey] = (),
        most_s: float | None = None,
    ) -> AsyncIterator[LockRequest]:
        """Holds locks within, entered when all are granted, or after `most_s`."""
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
        """Whether a request waits for a lock."""
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
        """Grants a key to the first requests of its queue, and notifies them if more requests wait."""
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
