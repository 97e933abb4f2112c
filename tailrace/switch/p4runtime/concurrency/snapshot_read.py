# SPDX-License-Identifier: Apache-2.0
"""Consistent reads: a Read holds shared locks until all its responses are made.

Responses are made as the client takes them. When a Write waits for a lock, the remaining responses are made
at once and buffered, so a slow client delays no Write. A remainder that takes too long is aborted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.p4runtime.concurrency.locks import LockRequest
from tailrace.switch.p4runtime.concurrency.scheduler import Scheduler

REST_S = 5.0
"""Longest time that a Write waits for the remainder of a Read."""


class SnapshotRead:
    """The responses of one Read."""

    def __init__(
        self,
        quanta: Iterator[p4r.ReadResponse | None],
        scheduler: Scheduler,
        request: LockRequest,
        keep: Callable[[int], None],
    ) -> None:
        """Args:
        quanta: the responses; None for a quantum without entities.
        request: the locks of what is read; released when all of it is.
        keep: called with the bytes that are buffered, below 0: freed; P4RtError: too many.
        """
        self._responses, self._scheduler, self._request, self._keep = quanta, scheduler, request, keep
        self._kept: deque[p4r.ReadResponse] = deque()
        self.quanta = 0
        """Quanta so far."""
        self._rest: asyncio.Task[None] | None = None
        request.when_contended(self._make_rest)

    async def responses(self) -> AsyncIterator[p4r.ReadResponse]:
        """All responses, with pauses for other calls.

        Raises:
            P4RtError: the read fails, or too much is buffered.
        """
        while self._rest is None:
            response = next(self._responses, _END)
            if response is _END:
                self._request.release()
                return
            if self.quanta:
                await self._scheduler.pause()
            self.quanta += 1
            if isinstance(response, p4r.ReadResponse):
                yield response
        try:
            await self._rest
        except P4RtError as error:
            refused: P4RtError | None = error
        else:
            refused = None
        while self._kept:
            response = self._kept.popleft()
            self._forget(response)
            yield response
        if refused is not None:
            raise refused

    def close(self) -> None:
        """Stops the read and releases its locks."""
        if self._rest is not None:
            self._rest.cancel()
        while self._kept:
            self._forget(self._kept.popleft())
        self._request.release()

    def _forget(self, response: p4r.ReadResponse) -> None:
        self._keep(-response.ByteSize())

    def _make_rest(self) -> None:
        self._rest = asyncio.get_running_loop().create_task(self._all())
        # the client may have disconnected
        self._rest.add_done_callback(lambda rest: rest.cancelled() or rest.exception())

    async def _all(self) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + REST_S
        try:
            for response in self._responses:
                if loop.time() > ends_s:
                    raise P4RtError(
                        Code.ABORTED,
                        f"a Write has waited {REST_S:g} s for the rest of this Read: read it again",
                    )
                if response is not None:
                    self._keep(response.ByteSize())
                    self._kept.append(response)
                self.quanta += 1
                await self._scheduler.pause()
        finally:
            self._request.release()


_END = object()
