# SPDX-License-Identifier: Apache-2.0
"""The answer to a Read, which is that of one moment: nobody writes to what is read before all of it is.

It is made as the client takes it. Where a Write waits for it, the rest is made at once and kept, so that no
client holds up another by taking its time; nor by asking for much: a rest that takes too long is refused.
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
"""How long a Write waits for rests of Reads."""


class SnapshotRead:
    """One answer."""

    def __init__(
        self,
        quanta: Iterator[p4r.ReadResponse | None],
        scheduler: Scheduler,
        request: LockRequest,
        keep: Callable[[int], None],
    ) -> None:
        """Args:
        slices: of the answer; None where one found nothing.
        claim: of what is read; left when all of it is.
        keep: is told how many bytes are kept, less than 0: no longer; P4RtError: too many are.
        """
        self._responses, self._scheduler, self._request, self._keep = quanta, scheduler, request, keep
        self._kept: deque[p4r.ReadResponse] = deque()
        self.quanta = 0
        """How many have been made."""
        self._rest: asyncio.Task[None] | None = None
        request.when_contended(self._make_rest)

    async def responses(self) -> AsyncIterator[p4r.ReadResponse]:
        """All of it, in slices between which others have their turn.

        Raises:
            P4RtError: what the slices raise, or too much is kept.
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
        """Nothing more is made of it."""
        if self._rest is not None:
            self._rest.cancel()
        while self._kept:
            self._forget(self._kept.popleft())
        self._request.release()

    def _forget(self, response: p4r.ReadResponse) -> None:
        self._keep(-response.ByteSize())

    def _make_rest(self) -> None:
        self._rest = asyncio.get_running_loop().create_task(self._all())
        # whoever asked may have gone
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
