# SPDX-License-Identifier: Apache-2.0
"""RPC handlers: errors become statuses, requests have a deadline, and calls leak no memory.

`context.abort` raises an exception that the call's context refers to. The traceback of that exception refers
to the context and to every frame with its request: a reference cycle. An error in a local variable makes
another cycle. So handlers raise P4RtError, `with_status` clears the frames of its traceback, and gRPC gets no
exception.

gRPC's core sends and receives in batches of operations. The task that awaits a batch frees it and its message
(https://github.com/grpc/grpc/issues/43360). Both leak if the batch failed or the task was cancelled (gRPC
cancels the handlers of a client that disconnects): 100 to 300 bytes per stream, which pin a page of memory.
So this module never cancels such tasks and hides failed batches from gRPC; `shielded` raises CancelledError
instead.

gRPC buffers a partial request as long as its call is open, and awaits the request of a unary call before it
calls the handler. So unary calls are registered as streaming ones, which are the same on the wire, and this
module awaits the request with a deadline.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakSet, ref

import grpc
import grpc.aio

from tailrace.p4rt.status import DETAILS, Code, P4RtError, exhausted, invalid, without_frames
from tailrace.spec.text import one_line
from tailrace.switch.core import StateError
from tailrace.switch.p4runtime.context import as_p4rt_error

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
Behaviour = Callable[[Any, Any], Coroutine[Any, Any, Any]]
"""An RPC handler: a coroutine that takes a request, or an iterator of requests, and the call's context."""

ARRIVAL_S = 60.0
"""Longest time until a request has arrived completely; messages of streams have no deadline."""
MAX_PENDING = 256
"""Most calls whose request has not arrived; a further call ends the oldest. Each may be on another
connection.
"""
TRIM_ABOVE_OCTETS = 1 << 20
"""After a request of more octets than this, freed memory is returned to the system."""
MAX_LOG = 1000
"""Most characters of an internal error in the log."""

_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in the stubs

_STATUS = {code.value[0]: code for code in grpc.StatusCode}

_SERVER_STOPPED = "_ServerStoppedError"
_BATCH_ERROR = "ExecuteBatchError"
_BATCH_FAILED = 'Failed "execute_batch"'
"""The names of gRPC's private error classes, for a stopped server and for batches. A batch error's message
begins with _BATCH_FAILED if the batch has failed; otherwise the batch could not be started.
"""


def with_status(behaviour: Behaviour) -> Behaviour:
    """Wraps a handler: an exception ends its call with a canonical code and a message of one line."""

    async def call(request: Any, context: Any) -> Any:
        try:
            return await behaviour(request, context)
        except Exception as error:  # noqa: BLE001 - a call must not end without a status
            if type(error).__name__ in (_BATCH_ERROR, _SERVER_STOPPED):
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
    """What the client gets for an exception of a handler."""
    if isinstance(error, P4RtError | StateError):
        return as_p4rt_error(error)
    if isinstance(error, MemoryError):
        return exhausted("out of memory")
    *_, last = traceback.walk_tb(error.__traceback__)
    location = f"{last[0].f_code.co_name}:{last[1]}: "
    _log.error("%s", one_line(f"internal error: {location}{type(error).__name__}: {error}", MAX_LOG))
    return P4RtError(Code.INTERNAL, "internal error; see the switch's log")


class _Future(asyncio.Future[Any]):
    """The future of a batch: if the batch fails, the result is None, and `_Loop.failed` lists the task."""

    def __init__(self, loop: _Loop) -> None:
        super().__init__(loop=loop)
        task = asyncio.current_task(loop)
        # a strong reference would make a cycle, and cycles are collected late (daemon/cli.py)
        self._waiting_task = None if task is None else ref(task)
        self._failed = loop.failed

    def set_exception(self, exception: type | BaseException, /) -> None:
        if type(exception).__name__ == _BATCH_ERROR and str(exception).startswith(_BATCH_FAILED):
            task = self._waiting_task() if self._waiting_task is not None else None
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
    """An event loop for gRPC servers that frees failed batches, which gRPC itself would leak."""
    return _Loop()


async def shielded(call: Awaitable[_T]) -> _T:
    """The result of one operation of a call; the operation continues if the awaiting task is cancelled.

    Raises:
        CancelledError: the task was cancelled, or the call has ended.
    """
    task = asyncio.ensure_future(call)
    task.add_done_callback(retrieve_exception)
    try:
        result = await asyncio.shield(task)
    except Exception as error:
        if type(error).__name__ == _BATCH_ERROR:
            raise asyncio.CancelledError from None
        raise
    if task in getattr(task.get_loop(), "failed", ()):
        raise asyncio.CancelledError
    return result


class Messages(AsyncIterator[bytes]):
    """The messages of a stream, each awaited by `shielded`.

    gRPC's iterator leaks unless it is read to the end, and a generator would keep the last message in memory
    until the next one arrives.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    async def __anext__(self) -> bytes:
        octets = await shielded(self._context.read())
        if octets is _EOF:
            raise StopAsyncIteration
        return cast(bytes, octets)


def retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieves the error of a task that nothing awaits, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


class PendingRequests:
    """The calls whose request has not arrived."""

    def __init__(self) -> None:
        self._calls: dict[asyncio.Future[None], None] = {}

    async def first(self, message: Awaitable[_T]) -> _T:
        """Awaits the first message of a call.

        Raises:
            P4RtError: DEADLINE_EXCEEDED: it took too long; RESOURCE_EXHAUSTED: too many calls are pending.
        """
        reading = asyncio.ensure_future(message)
        reading.add_done_callback(retrieve_exception)
        evicted = asyncio.get_running_loop().create_future()
        if len(self._calls) >= MAX_PENDING:
            oldest = next(iter(self._calls))
            del self._calls[oldest]
            oldest.set_result(None)
        self._calls[evicted] = None
        try:
            await asyncio.wait({reading, evicted}, timeout=ARRIVAL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._calls.pop(evicted, None)
        if reading.done():
            return reading.result()
        if evicted.done():
            raise exhausted(
                f"too many calls wait for their request (limit {MAX_PENDING}); this one was the oldest"
            )
        raise P4RtError(Code.DEADLINE_EXCEEDED, f"the request has not arrived within {ARRIVAL_S:g} s")


class DeadlineHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Adds the deadline of requests to other handlers; their methods must be coroutines that take octets."""

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler[Any, Any]],
        on_freed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_freed` is called after much memory may have been freed: see spec.heap.Trimmer."""
        self._handlers = handlers
        self._on_freed = on_freed
        self._pending = PendingRequests()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The handler of a call."""
        served = (handler.service(details) for handler in self._handlers)
        method: Any = next(filter(None, served), None)
        if method is None:
            return None
        if method.request_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._with_messages(method.stream_stream), response_serializer=method.response_serializer
            )
        if method.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._with_request(method.unary_stream), response_serializer=method.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(
            self._with_request(method.unary_unary), response_serializer=method.response_serializer
        )

    @staticmethod
    def _with_messages(behaviour: Behaviour) -> Behaviour:
        async def handle(_: object, context: Any) -> Any:  # gRPC requires a coroutine function
            return await behaviour(Messages(context), context)

        return handle

    def _with_request(self, behaviour: Behaviour) -> Behaviour:
        async def handle(_: object, context: Any) -> Any:
            try:
                octets = await self._pending.first(shielded(context.read()))
            except P4RtError as error:
                self._on_freed()
                set_status(context, without_frames(error))
                return b""
            if octets is _EOF:
                set_status(context, invalid("the call has no request"))
                return b""
            large = len(octets) > TRIM_ABOVE_OCTETS
            handled = behaviour(octets, context)
            del octets  # so that the handler can free the request once it is parsed
            try:
                return await handled
            finally:
                if large:
                    self._on_freed()

        return handle
