# SPDX-License-Identifier: Apache-2.0
"""Packet traces over gRPC: a separate service, as P4Runtime has no message for them.

A request asks for a dry run (trace/dry_run.py), or for a packet that is really sent. For a dry run, which
changes nothing, the client need not be primary. If the program makes random choices, a dry run can have
several outcomes: with `every` the response has a trace of each, else only of one. With `needs` it also has
the state that the packet reads (TraceNeeds: program, entities, time), from which another switch can produce
the same trace. Each trace of a dry run stops packets for some microseconds. The next trace is made when the
client has read the last one; other clients are served in between. A request that sends a packet needs a
primary's election id, if there is a primary. Another thread tracks the packet while it is in the switch.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import grpc
import grpc.aio
import msgspec

from tailrace.p4rt.requests import TRACE, TraceNeeds, TraceRequest
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.core.lib import C
from tailrace.switch.core.types import PortError
from tailrace.switch.p4runtime.calls import shielded, with_status
from tailrace.switch.p4runtime.device import Device
from tailrace.switch.p4runtime.service import STALLED_S
from tailrace.switch.trace import Trace, TraceError, dry_runs
from tailrace.switch.trace.injection import InjectFrame, send_packet

MAX_TRACES = 64
"""Most concurrent requests. A client that reads no traces counts for STALLED_S, as with a Read."""

MAX_SENT = 4
"""Most concurrent requests that send a packet; one packet is tracked at a time, the others wait."""

_MOST_REQUEST_BYTES = 2 * C.TR_MAX_FRAME + 1024
_LOOP_S = 10.0
"""Longest wait for the event loop, which may have stopped with the server."""
_END = object()
_T = TypeVar("_T")


class TraceService:
    """The trace service of one or several devices."""

    def __init__(
        self, devices: Mapping[int, Device], executor: Executor, on_freed: Callable[[], None] = lambda: None
    ) -> None:
        """Args:
        devices: the devices, by device id.
        executor: one thread, for dry runs.
        on_freed: called after much memory may have been freed.
        """
        self._devices = devices
        self._on_freed = on_freed
        self._executor = executor
        self._sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="send")
        self.under_way = self._sent = 0
        self.injectors: dict[int, InjectFrame] = {}
        """For devices that run in real time, by device id: functions that inject a frame at a port."""
        self._ended = threading.Event()

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """The gRPC handler of the service."""
        service, method = TRACE
        handlers = {method: grpc.unary_stream_rpc_method_handler(with_status(self._trace))}
        handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(service, handlers)
        return handler

    def stop(self) -> None:
        """Stops tracking sent packets."""
        self._ended.set()
        self._sender.shutdown(wait=True, cancel_futures=True)

    async def _trace(self, octets: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        try:
            if len(octets) > _MOST_REQUEST_BYTES:
                raise TraceError(f"the request has {len(octets)} bytes; the limit is {_MOST_REQUEST_BYTES}")
            request = msgspec.json.decode(octets, type=TraceRequest)
            frame = binascii.unhexlify(request.frame)
            if len(frame) > C.TR_MAX_FRAME:
                raise TraceError(f"the packet has {len(frame)} bytes; the limit is {C.TR_MAX_FRAME}")
            if request.send and (request.every or request.needs):
                raise TraceError("`send` excludes `every` and `needs`: they are for dry runs")
        except (binascii.Error, ValueError, TraceError) as error:
            # msgspec raises ValueError, unhexlify binascii.Error, the lines above TraceError
            raise invalid(f"trace: {error}") from None
        device = self._devices.get(request.device_id)
        if device is None:
            raise not_found(f"device {request.device_id} is not known")
        primaries = {client.election_id for client in device.arbiter.primaries()}
        if request.send and primaries and request.election_id not in primaries:
            message = "the switch has a primary controller: sending a packet needs its election id"
            raise P4RtError(Code.PERMISSION_DENIED, message)
        if self.under_way >= MAX_TRACES:
            raise exhausted(f"{self.under_way} requests for traces are under way; the limit is {MAX_TRACES}")
        if request.send and self._sent >= MAX_SENT:
            raise exhausted(f"{self._sent} packets are being sent for traces; the limit is {MAX_SENT}")
        self.under_way += 1
        self._sent += request.send
        try:
            pending = await self._send_all(self._results(device, request, frame), context)
        except (TraceError, CompilerError, PortError) as error:
            raise P4RtError(Code.FAILED_PRECONDITION, str(error)) from None
        finally:
            self.under_way -= 1
            self._sent -= request.send
            self._on_freed()
        if pending is not None:
            await pending  # the status can only be sent after the pending write
            message = f"the client has read no trace for {STALLED_S:g} s"
            raise P4RtError(Code.DEADLINE_EXCEEDED, message)

    @staticmethod
    async def _send_all(
        traces: AsyncGenerator[Trace | TraceNeeds, None],
        context: grpc.aio.ServicerContext[bytes, bytes],
    ) -> asyncio.Future[None] | None:
        """Sends all traces; returns the pending write if the client reads no more, else None."""
        async with contextlib.aclosing(traces):
            async for trace in traces:
                written = asyncio.ensure_future(shielded(context.write(msgspec.json.encode(trace))))
                if not (await asyncio.wait({written}, timeout=STALLED_S))[0]:
                    return written
                await written
        return None

    async def _results(
        self, device: Device, request: TraceRequest, frame: bytes
    ) -> AsyncGenerator[Trace | TraceNeeds, None]:
        loop = asyncio.get_running_loop()

        def in_loop(function: Callable[[], _T]) -> _T:
            async def call() -> _T:
                return function()

            # entities are not thread-safe
            return asyncio.run_coroutine_threadsafe(call(), loop).result(_LOOP_S)

        def describe(kind: Literal["entry", "member", "group"], name: str, handle: int) -> str:
            return in_loop(lambda: device.entity_text(kind, name, handle))

        def trace_packet() -> Iterator[Trace | TraceNeeds]:
            switch, now_ns = device.running()
            if request.send:
                inject = self._injector(device, request.port)
                yield send_packet(switch, inject, request.port, frame, ended=self._ended, describe=describe)
                return
            runs = dry_runs(switch, request.port, frame, at_ns=now_ns, describe=describe)
            trace, steps = next(runs)
            yield trace
            # a trace that exceeds a size limit is cut, so it does not contain all state that the packet reads
            if request.needs and not trace.cut:
                yield in_loop(lambda: device.needs(steps, now_ns))
            if request.every:
                yield from (run.trace for run in runs)

        traces, executor = trace_packet(), self._sender if request.send else self._executor
        while True:
            trace = await loop.run_in_executor(executor, next, traces, _END)
            if not isinstance(trace, Trace | TraceNeeds):
                return
            yield trace

    def _injector(self, device: Device, port: int) -> InjectFrame:
        inject = self.injectors.get(device.settings.device_id)
        if inject is None:
            raise TraceError(
                "the switch runs in virtual time, where packets come only from the simulated network"
            )
        if not device.has_port(port):
            raise TraceError(f"the switch has no port {port}")
        return inject
