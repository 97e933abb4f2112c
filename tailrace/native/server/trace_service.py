# SPDX-License-Identifier: Apache-2.0
"""Traces over gRPC, beside P4Runtime, which has no place for them: what the switch would do with a packet.

Anybody may ask: it changes nothing. A trace is made while packets wait for some microseconds, one at a time.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Executor
from typing import Any, Literal

import grpc
import grpc.aio
import msgspec

from tailrace.native.compiler.errors import ProgramError
from tailrace.native.runtime.lib import C
from tailrace.native.server.device import Device
from tailrace.native.trace import Trace, TraceError, outcomes, try_packet
from tailrace.p4rt.requests import TRACE, TraceRequest
from tailrace.words.text import one_line

_MOST_REQUEST_BYTES = 2 * C.TR_MAX_FRAME + 1024
_LOOP_S = 10.0
"""Longest wait for the loop, which may have ended with the server."""
_END = object()


class TraceService:
    """The service for some devices, by their ids."""

    def __init__(self, devices: Mapping[int, Device], executor: Executor) -> None:
        self._devices = devices
        self._executor = executor
        self._one = asyncio.Semaphore()

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """The service as a gRPC server takes it."""
        service, method = TRACE
        handlers = {method: grpc.unary_stream_rpc_method_handler(self._try)}
        handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(service, handlers)
        return handler

    async def _try(
        self, octets: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        try:
            if len(octets) > _MOST_REQUEST_BYTES:
                raise TraceError(
                    f"the request has {len(octets)} bytes; at most {_MOST_REQUEST_BYTES} are allowed"
                )
            request = msgspec.json.decode(octets, type=TraceRequest)
            frame = binascii.unhexlify(request.frame)
        except (binascii.Error, ValueError, TraceError) as error:
            # of msgspec, of base 16, or ours
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, one_line(f"trace: {error}"))
        device = self._devices.get(request.device_id)
        if device is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"device {request.device_id} is not known")
            raise AssertionError("abort returned")
        async with self._one:
            try:
                async for trace in self._traces(device, request, frame):
                    yield msgspec.json.encode(trace)
            except (TraceError, ProgramError) as error:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, one_line(str(error)))

    async def _traces(self, device: Device, request: TraceRequest, frame: bytes) -> AsyncIterator[Trace]:
        loop = asyncio.get_running_loop()

        def written(kind: Literal["entry", "member", "group"], name: str, handle: int) -> str:
            async def described() -> str:
                return device.described(kind, name, handle)

            # the entities belong to the loop's thread
            return asyncio.run_coroutine_threadsafe(described(), loop).result(_LOOP_S)

        def made() -> Iterator[Trace]:
            switch, now_ns = device.running()
            if request.every:
                yield from outcomes(switch, request.port, frame, at_ns=now_ns, written=written)
            else:
                yield try_packet(switch, request.port, frame, at_ns=now_ns, written=written)

        traces = made()
        while True:
            trace = await loop.run_in_executor(self._executor, next, traces, _END)
            if not isinstance(trace, Trace):
                return
            yield trace
