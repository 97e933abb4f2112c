# SPDX-License-Identifier: Apache-2.0
"""A deadline for the arrival of requests: gRPC buffers a partial request as long as its call is open.

gRPC awaits the request of a unary call before it calls the handler. So unary calls are registered as
streaming ones, which is the same on the wire, and the request is awaited here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, without_frames
from tailrace.switch.p4runtime.calls import retrieve_exception, set_status, shielded

ARRIVAL_S = 60.0
"""Longest time until a request has arrived; messages of streams have no deadline."""
MAX_PENDING = 256
"""Requests that have not arrived, at a time; one more ends the oldest. Each may keep a connection open."""

LARGE = 1 << 20
"""Octets of a request after which freed memory is trimmed."""

_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # which the stubs do not know
_Behaviour = Callable[[Any, Any], Coroutine[Any, Any, Any]]
_T = TypeVar("_T")


class PendingRequests:
    """The calls whose request has not arrived."""

    def __init__(self) -> None:
        self._calls: dict[asyncio.Future[None], None] = {}

    async def first(self, message: Awaitable[_T]) -> _T:
        """The first message of a call.

        Raises:
            P4RtError: DEADLINE_EXCEEDED: it took too long; RESOURCE_EXHAUSTED: too many calls are pending.
        """
        reading = asyncio.ensure_future(message)
        reading.add_done_callback(retrieve_exception)
        gives_way = asyncio.get_running_loop().create_future()
        if len(self._calls) >= MAX_PENDING:
            oldest = next(iter(self._calls))
            del self._calls[oldest]
            oldest.set_result(None)
        self._calls[gives_way] = None
        try:
            await asyncio.wait({reading, gives_way}, timeout=ARRIVAL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._calls.pop(gives_way, None)
        if reading.done():
            return reading.result()
        if gives_way.done():
            raise exhausted(f"{MAX_PENDING} requests have not arrived; the limit is {MAX_PENDING}")
        raise P4RtError(Code.DEADLINE_EXCEEDED, f"the request has not arrived within {ARRIVAL_S:g} s")


class DeadlineHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # only the stubs know of arguments
    """The RPC methods of other handlers, with the deadline; all are coroutines that take octets."""

    def __init__(
        self, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]], freed: Callable[[], None] = lambda: None
    ) -> None:
        """`freed` is called when much memory is free: see spec.heap.Trimmer."""
        self._handlers = handlers
        self._freed = freed
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
    def _with_messages(behaviour: _Behaviour) -> _Behaviour:
        async def handle(_: object, context: Any) -> Any:
            return await behaviour(_Messages(context), context)

        return handle

    def _with_request(self, behaviour: _Behaviour) -> _Behaviour:
        async def handle(_: object, context: Any) -> Any:
            try:
                octets = await self._pending.first(shielded(context.read()))
            except P4RtError as error:
                self._freed()
                set_status(context, without_frames(error))
                return b""
            if octets is _EOF:
                set_status(context, invalid("the call has no request"))
                return b""
            large = len(octets) > LARGE
            handled = behaviour(octets, context)
            del octets  # the handler drops it once parsed
            try:
                return await handled
            finally:
                if large:
                    self._freed()

        return handle


class _Messages(AsyncIterator[bytes]):
    """The messages of a stream; gRPC's own iterator leaks when it is not exhausted."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def __anext__(self) -> bytes:
        octets: bytes = await self._context.read()
        if octets is _EOF:
            raise StopAsyncIteration
        return octets
