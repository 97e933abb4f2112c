# SPDX-License-Identifier: Apache-2.0
"""Requests arrive in time or not at all: gRPC keeps what has come of one as long as its call is open.

Where a call has one request gRPC waits for it before anybody here hears of the call. So it is told that there
may be many, which is the same on the wire, and the one is waited for here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import grpc
import grpc.aio

from tailrace.native.server.calls import seen, undisturbed

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
        """Takes who is told that memory is free: see giving_back.py."""
        self._handler = handler
        self._freed = freed

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """What handles a call that has begun."""
        handler = self._handler.service(details)
        found: Any = handler
        if handler is None or found.request_streaming:
            return handler
        if found.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._with_request(found.unary_stream), response_serializer=found.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(
            self._with_request(found.unary_unary), response_serializer=found.response_serializer
        )

    def _with_request(self, behaviour: _Behaviour) -> _Behaviour:
        async def handle(_: object, context: Any) -> Any:
            reading = asyncio.ensure_future(undisturbed(context.read()))
            reading.add_done_callback(seen)
            if not (await asyncio.wait({reading}, timeout=ARRIVES_S))[0]:
                self._freed()
                message = f"the request has not arrived within {ARRIVES_S:g} s"
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, message)
            octets = reading.result()
            if octets is _EOF:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
            try:
                return await behaviour(octets, context)
            finally:
                if len(octets) > LARGE:
                    self._freed()

        return handle
