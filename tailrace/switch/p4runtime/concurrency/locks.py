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

    __slots__ = ("_alone", "_leave", "_missing", "_wanted", "_when_wanted", "parts", "ready")

    def __init__(
        self, alone: Collection[LockKey], shared: Collection[LockKey], leave: Callable[[LockRequest], None]
    ) -> None:
        self._alone = frozenset(alone)
        self.parts = self._alone.union(shared)
        self._missing = set(self.parts)
        self._leave: Callable[[LockRequest], None] | None = leave
        self._wanted = False
        self._when_wanted: Callable[[], None] | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._missing:
            self.ready.set_result(None)

    def alone(self, part: LockKey) -> bool:
        """Whether nobody else may have it meanwhile."""
        return part in self._alone

    def grant(self, part: LockKey) -> None:
        """It has the part, if it had it not."""
        self._missing.discard(part)
        if not self._missing and not self.ready.done():
            self.ready.set_result(None)

    def want(self) -> None:
        """Somebody waits for one of its parts."""
        if not self._wanted and self._leave is not None:
            self._wanted = True
            if self._when_wanted is not None:
                self._when_wanted()

    def when_wanted(self, call: Callable[[], None]) -> None:
        """Calls this once when somebody waits for one of these parts, or now."""
        self._when_wanted = call
        if self._wanted:
            call()

    def leave(self) -> None:
        """Others may have the parts."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(self)


class LockManager:
    """Of one device. Use it inside its event loop."""

    def __init__(self) -> None:
        self._queues: dict[LockKey, dict[LockRequest, None]] = {}

    @asynccontextmanager
    async def claim(
        self, alone: Collection[LockKey] = (), shared: Collection[LockKey] = (), most_s: float | None = None
    ) -> AsyncIterator[LockRequest]:
        """Around what is done with some parts; it begins when all of them are there, or after `most_s`."""
        claim = LockRequest(alone, shared, self._left)
        for part in claim.parts:
            self._queues.setdefault(part, {})[claim] = None
            self._serve(part)
        try:
            if not claim.ready.done():
                await asyncio.wait({claim.ready}, timeout=most_s)
            yield claim
        finally:
            claim.leave()

    def waits(self) -> bool:
        """Whether somebody waits for a part."""
        return any(not claim.ready.done() for queue in self._queues.values() for claim in queue)

    def _left(self, claim: LockRequest) -> None:
        for part in claim.parts:
            queue = self._queues[part]
            del queue[claim]
            if queue:
                self._serve(part)
            else:
                del self._queues[part]

    def _serve(self, part: LockKey) -> None:
        """Those that are first have it; if others wait, they are told."""
        queue = self._queues[part]
        having: list[LockRequest] = []
        for claim in queue:
            if having and (claim.alone(part) or having[0].alone(part)):
                break
            having.append(claim)
            claim.grant(part)
        if len(queue) > len(having):
            for claim in having:
                claim.want()
