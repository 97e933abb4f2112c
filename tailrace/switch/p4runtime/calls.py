# SPDX-License-Identifier: Apache-2.0
"""RPC handlers: errors become statuses, and calls leave no memory behind.

`context.abort` raises an exception that the call's context keeps. The traceback of that exception keeps the
context and every frame with its request: a reference cycle. An error in a variable of a frame is another one.
So handlers raise P4RtError, `with_status` clears the frames of its traceback, and gRPC gets no exception.

The task that awaits a batch of operations frees the batch and its message
(https://github.com/grpc/grpc/issues/43360). It does not when the task was cancelled, as gRPC cancels handlers
of clients that disconnect, or when the batch failed: 100 to 300 bytes leak a stream, and each of them pins a
page. So these tasks are never cancelled and batches never fail for gRPC: `shielded` reports both.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from weakref import WeakSet, ref

import grpc

from tailrace.p4rt.status import DETAILS, Code, P4RtError, exhausted, without_frames
from tailrace.spec.text import one_line
from tailrace.switch.core import StateError
from tailrace.switch.p4runtime.context import from_state_error

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
Behaviour = Callable[[Any, Any], Coroutine[Any, Any, Any]]
"""An RPC handler: a coroutine of a request, or of an iterator of requests, and of the call's context."""

MAX_LOG = 1000

_STATUS = {code.value[0]: code for code in grpc.StatusCode}

_STOPPED = "_ServerStoppedError"
_ERROR = "ExecuteBatchError"
_FAILED = 'Failed "execute_batch"'
"""gRPC's private classes of errors: of a stopped server and of batches. The third constant is how messages
begin of batches that failed; other errors are of batches that could not start.
"""


def with_status(behaviour: Behaviour) -> Behaviour:
    """The handler, where exceptions end the call with a canonical code and one line."""

    async def call(request: Any, context: Any) -> Any:
        try:
            return await behaviour(request, context)
        except Exception as error:  # noqa: BLE001 - a call must not end without a status
            if type(error).__name__ in (_ERROR, _STOPPED):
                raise asyncio.CancelledError from None  # the client disconnected or the server stopped
            set_status(context, _as_refusal(error))
            without_frames(error)
        return b""

    return call


def set_status(context: Any, error: P4RtError) -> None:
    """Sets the status of a call, sent when its handler returns."""
    context.set_code(_STATUS[error.code])
    context.set_details(error.message)
    if error.status is not None:
        context.set_trailing_metadata(((DETAILS, error.status),))


def _as_refusal(error: Exception) -> P4RtError:
    if isinstance(error, P4RtError):
        return error
    if isinstance(error, StateError):
        return from_state_error(error)
    if isinstance(error, MemoryError):
        return exhausted("out of memory")
    *_, last = traceback.walk_tb(error.__traceback__)
    place = f"{last[0].f_code.co_name}:{last[1]}: "
    _log.error("%s", one_line(f"internal error: {place}{type(error).__name__}: {error}", MAX_LOG))
    return P4RtError(Code.INTERNAL, "internal error; see the switch's log")


class _Future(asyncio.Future[Any]):
    def __init__(self, loop: _Loop) -> None:
        super().__init__(loop=loop)
        task = asyncio.current_task(loop)
        # a strong reference would be a cycle, and cycles are collected late (daemon/cli.py)
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
        """Tasks whose batch has failed."""

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop for gRPC servers, in which failed batches are freed."""
    return _Loop()


async def shielded(call: Awaitable[_T]) -> _T:
    """The result of one operation of a call, which continues when the awaiting task is cancelled.

    Raises:
        CancelledError: the task was cancelled, or the call has ended.
    """
    task = asyncio.ensure_future(call)
    task.add_done_callback(retrieve_exception)
    try:
        result = await asyncio.shield(task)
    except Exception as error:
        if type(error).__name__ == _ERROR:
            raise asyncio.CancelledError from None
        raise
    if task in getattr(task.get_loop(), "failed", ()):
        raise asyncio.CancelledError
    return result


def shielded_messages(messages: AsyncIterator[_T]) -> AsyncIterator[_T]:
    """The messages of a client, each awaited by `shielded`."""
    return _Received(messages)


class _Received(AsyncIterator[_T]):
    """No generator: that would keep the last message until the next one arrives."""

    def __init__(self, messages: AsyncIterator[_T]) -> None:
        self._messages = messages

    async def __anext__(self) -> _T:
        message = await shielded(self._next())
        if message is None:
            raise StopAsyncIteration
        return message

    async def _next(self) -> _T | None:
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            return None


def retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieves the error of a task that no task awaits, so that asyncio logs none."""
    if not task.cancelled():
        task.exception()
