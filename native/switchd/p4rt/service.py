# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime gRPC service: streams, and the translation of errors. All decisions are `device`'s.

Everything runs on one asyncio event loop, so requests are handled one after the other and need no locks. Only
the compilation of a program, which takes long, happens in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor
from typing import Any, NoReturn, Protocol

import grpc
import grpc.aio
from finsy.proto import p4r, rpc_status
from google.protobuf.message import Message

from native.switchd.p4rt.arbitration import Client, Notices
from native.switchd.p4rt.device import Device, capabilities, failed
from native.switchd.p4rt.errors import Code, P4RtError, batch_status
from native.switchd.p4rt.state import Result
from native.switchd.ports import PortError

_log = logging.getLogger(__name__)

_STATUS = {code.value[0]: code for code in grpc.StatusCode}

QUEUED_PACKETS = 4096
"""Packet-ins and notifications that wait for a slow client before new ones are dropped."""

_StreamContext = grpc.aio.ServicerContext[p4r.StreamMessageRequest, p4r.StreamMessageResponse]


class DataPlane(Protocol):
    """What the service needs of the ports: see native.switchd.ports.IoLoop."""

    def now_ns(self) -> int:
        """The clock that the switch is called with."""
        ...

    def send_packet_out(self, data: bytes) -> None:
        """Injects a frame on the CPU port; PortError when that is not possible."""
        ...

    def packet_ins(self) -> list[bytes]:
        """Takes the frames that the switch sent to the CPU port."""
        ...


class Stream:
    """One StreamChannel: a client and the messages that wait for it."""

    def __init__(self) -> None:
        self.client = Client()
        self.dropped = 0
        self._queue: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()

    def send(self, message: p4r.StreamMessageResponse) -> None:
        """Queues a message that must arrive."""
        self._queue.put_nowait(message)

    def offer(self, message: p4r.StreamMessageResponse) -> None:
        """Queues a message that may be lost when the client is slow."""
        if self._queue.qsize() < QUEUED_PACKETS:
            self._queue.put_nowait(message)
        else:
            self.dropped += 1

    async def write_all(self, context: _StreamContext) -> None:
        """Writes messages until it is cancelled."""
        while True:
            message = await self._queue.get()
            await context.write(message)
            self._queue.task_done()

    async def flushed(self) -> None:
        """Waits until everything queued so far is written."""
        await self._queue.join()


class P4RuntimeService:
    """The service for one device."""

    def __init__(self, device: Device, data_plane: DataPlane, executor: Executor) -> None:
        self.device = device
        self._data_plane = data_plane
        self._executor = executor
        self._streams: dict[Client, Stream] = {}

    # ---- unary calls ----

    async def write(
        self,
        request: p4r.WriteRequest,
        context: grpc.aio.ServicerContext[p4r.WriteRequest, p4r.WriteResponse],
    ) -> p4r.WriteResponse:
        """Specification 12."""
        try:
            results = self.device.write(request)
        except P4RtError as error:
            await _abort(context, error)
        if failed(results):
            await _abort_batch(context, "write failed", results)
        return p4r.WriteResponse()

    async def read(
        self, request: p4r.ReadRequest, context: grpc.aio.ServicerContext[p4r.ReadRequest, p4r.ReadResponse]
    ) -> AsyncIterator[p4r.ReadResponse]:
        """Specification 13: what could be read, and then the status of every request."""
        try:
            responses, results = self.device.read(request)
        except P4RtError as error:
            await _abort(context, error)
        for response in responses:
            yield response
        if failed(results):
            await _abort_batch(context, "read failed", results)

    async def set_config(
        self,
        request: p4r.SetForwardingPipelineConfigRequest,
        context: grpc.aio.ServicerContext[
            p4r.SetForwardingPipelineConfigRequest, p4r.SetForwardingPipelineConfigResponse
        ],
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Specification 14."""
        try:
            self.device.authorize(request)
            loop = asyncio.get_running_loop()
            prepared = await loop.run_in_executor(self._executor, self.device.prepare, request)
            # the client may have lost its role while the program was compiled
            self.device.authorize(request)
            self.device.configure(request.action, prepared)
        except P4RtError as error:
            await _abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    async def get_config(
        self,
        request: p4r.GetForwardingPipelineConfigRequest,
        context: grpc.aio.ServicerContext[
            p4r.GetForwardingPipelineConfigRequest, p4r.GetForwardingPipelineConfigResponse
        ],
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Specification 15."""
        try:
            self.device.check_device(request.device_id)
            return self.device.pipeline_config(request.response_type)
        except P4RtError as error:
            await _abort(context, error)

    async def capabilities(
        self,
        _request: p4r.CapabilitiesRequest,
        _context: grpc.aio.ServicerContext[p4r.CapabilitiesRequest, p4r.CapabilitiesResponse],
    ) -> p4r.CapabilitiesResponse:
        """Specification 17."""
        return capabilities()

    # ---- the stream ----

    async def stream_channel(
        self, request_iterator: AsyncIterator[p4r.StreamMessageRequest], context: _StreamContext
    ) -> None:
        """Specification 5 and 16: one client's session, which lasts as long as the stream."""
        stream = Stream()
        self._streams[stream.client] = stream
        writer = asyncio.create_task(stream.write_all(context))
        try:
            async for message in request_iterator:
                self._handle(stream, message)
        except P4RtError as error:
            await stream.flushed()
            await _abort(context, error)
        finally:
            writer.cancel()
            del self._streams[stream.client]
            self._tell(self.device.arbiter.disconnect(stream.client))
            await asyncio.gather(writer, return_exceptions=True)

    def _handle(self, stream: Stream, message: p4r.StreamMessageRequest) -> None:
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            self._tell(self.device.arbiter.update(stream.client, message.arbitration))
            return
        try:
            self._handle_other(stream, kind, message)
        except P4RtError as error:
            response = p4r.StreamMessageResponse()
            response.error.canonical_code = error.code
            response.error.message = error.message
            if kind == "packet":
                response.error.packet_out.packet_out.CopyFrom(message.packet)
            elif kind == "digest_ack":
                response.error.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
            else:
                response.error.other.other.CopyFrom(message.other)
            stream.offer(response)

    def _handle_other(self, stream: Stream, kind: str | None, message: p4r.StreamMessageRequest) -> None:
        if kind in ("packet", "digest_ack") and not self.device.arbiter.is_primary(stream.client):
            raise P4RtError(Code.PERMISSION_DENIED, "the client is not the primary of its role")
        if kind == "packet":
            frame = self.device.packet_out(message.packet)
            try:
                self._data_plane.send_packet_out(frame)
            except PortError as error:
                raise P4RtError(Code.INVALID_ARGUMENT, str(error)) from error
        elif kind == "digest_ack":
            self.device.acknowledge(message.digest_ack)
        elif kind == "other":
            raise P4RtError(Code.UNIMPLEMENTED, "other stream messages are not supported")
        else:
            raise P4RtError(Code.INVALID_ARGUMENT, "the stream message is empty")

    def _tell(self, notices: Notices) -> None:
        for client, update in notices:
            stream = self._streams.get(client)
            if stream is not None:
                stream.send(p4r.StreamMessageResponse(arbitration=update))

    def _offer(self, message: p4r.StreamMessageResponse) -> None:
        """Sends a notification to the primaries of all roles: each role has the full pipeline."""
        for client in self.device.arbiter.primaries():
            self._streams[client].offer(message)

    # ---- events ----

    def deliver_events(self) -> None:
        """Sends the packet-ins and the digest lists that wait in the data plane."""
        for frame in self._data_plane.packet_ins():
            packet = self.device.packet_in(frame)
            if packet is not None:
                self._offer(p4r.StreamMessageResponse(packet=packet))
        for digest in self.device.digest_lists(self._data_plane.now_ns()):
            digest.timestamp = time.time_ns()
            self._offer(p4r.StreamMessageResponse(digest=digest))

    def deliver_idle(self) -> None:
        """Sends the idle timeouts that have run out."""
        entries = self.device.idle_entries(self._data_plane.now_ns())
        if entries:
            response = p4r.StreamMessageResponse()
            response.idle_timeout_notification.timestamp = time.time_ns()
            response.idle_timeout_notification.table_entry.extend(entries)
            self._offer(response)


class Behaviours(Protocol):
    """The calls of the service: of one device, or of many behind one address (native.virtual.serve)."""

    @property
    def write(self) -> Callable[..., Any]:
        """Write."""
        ...

    @property
    def read(self) -> Callable[..., Any]:
        """Read."""
        ...

    @property
    def set_config(self) -> Callable[..., Any]:
        """SetForwardingPipelineConfig."""
        ...

    @property
    def get_config(self) -> Callable[..., Any]:
        """GetForwardingPipelineConfig."""
        ...

    @property
    def capabilities(self) -> Callable[..., Any]:
        """Capabilities."""
        ...

    @property
    def stream_channel(self) -> Callable[..., Any]:
        """StreamChannel."""
        ...


def rpc_handler(service: Behaviours) -> grpc.GenericRpcHandler[Any, Any]:
    """The service as a gRPC server takes it."""
    unary, server_stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    set_request = p4r.SetForwardingPipelineConfigRequest
    get_request = p4r.GetForwardingPipelineConfigRequest
    methods: dict[str, tuple[Any, Any, type[Message]]] = {
        "Write": (unary, service.write, p4r.WriteRequest),
        "Read": (server_stream, service.read, p4r.ReadRequest),
        "SetForwardingPipelineConfig": (unary, service.set_config, set_request),
        "GetForwardingPipelineConfig": (unary, service.get_config, get_request),
        "StreamChannel": (
            grpc.stream_stream_rpc_method_handler,
            service.stream_channel,
            p4r.StreamMessageRequest,
        ),
        "Capabilities": (unary, service.capabilities, p4r.CapabilitiesRequest),
    }
    handlers = {
        name: make(behaviour, request_deserializer=request.FromString, response_serializer=_serialize)
        for name, (make, behaviour, request) in methods.items()
    }
    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", handlers)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


_AnyContext = grpc.aio.ServicerContext[Any, Any]


async def _abort(context: _AnyContext, error: P4RtError) -> NoReturn:
    await context.abort(_STATUS[error.code], error.message)
    raise AssertionError("abort returned")


async def _abort_batch(context: _AnyContext, message: str, results: Iterable[Result]) -> NoReturn:
    status: rpc_status.Status = batch_status(message, list(results))
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    await context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError("abort returned")
