# SPDX-License-Identifier: Apache-2.0
"""Requests arrive in time or not at all: gRPC keeps what has come of one as long as its call is open.

Where a call has one request gRPC waits for it before anybody here hears of the call. So it is told that there
may be many, which is the same on the wire, and the one is waited for here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import grpc.aio

from tailrace.native.server.calls import refuse, seen, undisturbed
from tailrace.p4rt.status import Code, P4RtError, invalid

ARRIVES_S = 60.0
"""How long a request may be on its way; those of streams may come at any time."""

LARGE = 1 << 20
"""Octets of a request whose memory is worth while to be given back."""

_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # which the stubs do not know
_Behaviour = Callable[[Any, Any], Coroutine[Any, Any, Any]]


class InTime(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # only the stubs know of arguments
    """The calls of another handler, all of them coroutines that take octets."""

    def __init__(
        self, handler: grpc.GenericRpcHandler[Any, Any], freed: Callable[[], None] = lambda: None
    ) -> None:
        """Takes what is called when memory is free: see words.heap.Trimmer."""
        self._handler = handler
        self._freed = freed

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """What handles a call that has begun."""
        handler = self._handler.service(details)
        found: Any = handler
        if handler is None:
            return None
        if found.request_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._with_messages(found.stream_stream), response_serializer=found.response_serializer
            )
        if found.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._with_request(found.unary_stream), response_serializer=found.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(
            self._with_request(found.unary_unary), response_serializer=found.response_serializer
        )

    @staticmethod
    def _with_messages(behaviour: _Behaviour) -> _Behaviour:
        async def handle(_: object, context: Any) -> Any:
            return await behaviour(_Messages(context), context)

        return handle

    def _with_request(self, behaviour: _Behaviour) -> _Behaviour:
        async def handle(_: object, context: Any) -> Any:
            reading = asyncio.ensure_future(undisturbed(context.read()))
            reading.add_done_callback(seen)
            if not (await asyncio.wait({reading}, timeout=ARRIVES_S))[0]:
                self._freed()
                message = f"the request has not arrived within {ARRIVES_S:g} s"
                refuse(context, P4RtError(Code.DEADLINE_EXCEEDED, message))
                return b""
            octets = reading.result()
            del reading
            if octets is _EOF:
                refuse(context, invalid("the call has no request"))
                return b""
            large = len(octets) > LARGE
            handled = behaviour(octets, context)
            del octets  # the handler drops it when it has read it
            try:
                return await handled
            finally:
                if large:
                    self._freed()

        return handle


class _Messages(AsyncIterator[bytes]):
    """The messages of a stream; gRPC's own iterator is never freed while it has one that was not the last."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def __anext__(self) -> bytes:
        octets: bytes = await self._context.read()
        if octets is _EOF:
            raise StopAsyncIteration
        return octets
