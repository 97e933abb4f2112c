# SPDX-License-Identifier: Apache-2.0
"""Waiting for gRPC's core, so that it frees what it has taken, whatever clients do.

What a batch of operations holds, a message to be sent among it, is freed by whoever waits for the batch when
it ends (https://github.com/grpc/grpc/issues/43360). It never is where that one was cancelled, as gRPC does to
handlers when their client goes, or where the batch fails: 100 to 300 bytes a stream, as often as a client
likes, and each of them keeps a page from going back to the system. So nobody who waits is cancelled, and for
gRPC no batch fails: `undisturbed` tells who has asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar
from weakref import WeakSet, ref

_T = TypeVar("_T")

_ERROR = "ExecuteBatchError"
_FAILED = 'Failed "execute_batch"'
"""The class of gRPC's errors of batches, which is private, and how those begin that are given to a future
when a batch has failed. Others could not begin.
"""


class _Future(asyncio.Future[Any]):
    def __init__(self, loop: _Loop) -> None:
        super().__init__(loop=loop)
        task = asyncio.current_task(loop)
        # a reference would be a cycle, and those stay for long (giving_back.py)
        self._waits = None if task is None else ref(task)
        self._failed = loop.failed

    def set_exception(self, exception: type | BaseException, /) -> None:
        if type(exception).__name__ == _ERROR and str(exception).startswith(_FAILED):
            task = self._waits() if self._waits is not None else None
            if task is not None:
                self._failed.add(task)
            self.set_result(None)
        else:
            super().set_exception(exception)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.failed: WeakSet[Any] = WeakSet()
        """Tasks that have waited for a batch that failed."""

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for gRPC servers that frees what batches hold that fail."""
    return _Loop()


async def undisturbed(call: Awaitable[_T]) -> _T:
    """What one operation of a call gives. It goes on to its end if who waits is cancelled.

    Raises:
        CancelledError: who waits was cancelled; or the call is over, and nothing may be sent any more.
    """
    task = asyncio.ensure_future(call)
    task.add_done_callback(seen)
    try:
        found = await asyncio.shield(task)
    except Exception as error:
        if type(error).__name__ == _ERROR:
            raise asyncio.CancelledError from None
        raise
    if task in getattr(task.get_loop(), "failed", ()):
        raise asyncio.CancelledError
    return found


async def received(messages: AsyncIterator[_T]) -> AsyncIterator[_T]:
    """The messages of a client, each awaited so."""
    while (message := await undisturbed(_next(messages))) is not None:
        yield message


async def _next(messages: AsyncIterator[_T]) -> _T | None:
    try:
        return await anext(messages)
    except StopAsyncIteration:
        return None


def seen(task: asyncio.Future[Any]) -> None:
    """Nobody may be left to look at the error."""
    if not task.cancelled():
        task.exception()
