# SPDX-License-Identifier: Apache-2.0
"""The data plane over gRPC, as in simple_switch_grpc (`--dp-grpc-server-addr`): ports have no interfaces.

One client at a time sends packets to ports and receives all packets that leave the switch, each with the id
of the packet from which it results. The switch numbers received frames; a frame that results from a received
frame has the same number, its origin. After the client has closed its side of the stream, it receives the
remaining packets; the call ends when the switch is empty. A slow client blocks the ports, like a busy link.

`invalid` and `exhausted` are errors with gRPC's codes INVALID_ARGUMENT and RESOURCE_EXHAUSTED; `with_status`
ends a call with the code of such an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from tailrace.p4rt.bmv2_messages import (
    DOWN,
    SERVICE,
    SET_STATUS,
    STREAM,
    UP,
    Packet,
    PortStatus,
    PortStatusSet,
)
from tailrace.p4rt.status import exhausted, invalid
from tailrace.switch.core.types import PortError
from tailrace.switch.p4runtime.calls import with_status

if TYPE_CHECKING:
    from tailrace.switch.daemon.ports import IoLoop

KEPT_IDS = 1 << 20
"""Number of packet ids that are remembered; packets that result from older packets get id 0."""

MOST_WAITING = 1024
"""Maximum number of packets that wait for the client; then the switch accepts no packet from the client."""

_MAX_ORIGIN = (1 << 32) - 1
_BATCH = 64
_POLL_S = 0.002
"""Interval in s at which the service checks whether the switch is empty."""

_Context = grpc.aio.ServicerContext[bytes, bytes]


class DataplaneService:
    """The gRPC service of one device."""

    def __init__(self, frames: IoLoop, device_id: int, port_changed: Callable[[int, bool], None]) -> None:
        """`port_changed` is called with port and status whenever the client sets a port up or down."""
        self._frames = frames
        self._device_id = device_id
        self._port_changed = port_changed
        self._has_client = False
        self._ids: PacketIds | None = None

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """The gRPC handler of the service."""
        handlers = {
            STREAM: grpc.stream_stream_rpc_method_handler(with_status(self._stream)),
            SET_STATUS: grpc.unary_unary_rpc_method_handler(with_status(self._set_status)),
        }
        handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(SERVICE, handlers)
        return handler

    async def _set_status(self, octets: bytes, _context: _Context) -> bytes:
        request = self._parsed(PortStatus, octets)
        if request.oper_status not in (DOWN, UP):
            raise invalid(f"oper_status: expected {DOWN} (down) or {UP} (up), found {request.oper_status}")
        up = request.oper_status == UP
        try:
            self._frames.set_port(request.port, up)
        except PortError as error:
            raise invalid(str(error)) from None
        self._port_changed(request.port, up)
        response: bytes = PortStatusSet().SerializeToString()
        return response

    def _parsed(self, message: Any, octets: bytes) -> Any:
        try:
            request = message.FromString(octets)
        except DecodeError:
            raise invalid(f"the request is not a valid {message.DESCRIPTOR.full_name}") from None
        if request.device_id != self._device_id:
            raise invalid(f"device_id: expected {self._device_id}, found {request.device_id}")
        return request

    async def _stream(self, requests: AsyncIterator[bytes], context: _Context) -> None:
        if self._has_client:
            raise exhausted("another client has the packet stream: only one client at a time can have it")
        self._has_client = True
        ids = self._ids = self._ids or PacketIds()
        ids.forget()
        sender = _PacketSender(self._frames, self._device_id, ids, context)
        self._frames.set_listening(True)
        task = asyncio.create_task(sender.run())
        try:
            async for octets in requests:
                request = self._parsed(Packet, octets)
                # empty packets are ignored, as in BMv2
                if not request.packet:
                    continue
                await sender.wait_for_space()
                try:
                    self._frames.inject(request.port, request.packet, ids.origin(request.id))
                except PortError as error:
                    raise invalid(str(error)) from None
            sender.end()
            await task
        finally:
            # the next client may watch the descriptor only after this task has ended
            task.add_done_callback(self._sender_ended)
            task.cancel()

    def _sender_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # retrieving it keeps asyncio from logging it
        self._has_client = False
        with contextlib.suppress(PortError):  # the ports are closed when the switch stops
            self._frames.set_listening(False)


class PacketIds:
    """Maps the switch's 32-bit origins to the clients' 64-bit packet ids."""

    def __init__(self) -> None:
        self._ids = array("Q", bytes(8 * KEPT_IDS))
        self._last = 0
        self.forget()

    def forget(self) -> None:
        """Removes all ids: packets that are still in the switch do not belong to the next client."""
        self._origins = array("I", bytes(4 * KEPT_IDS))

    def origin(self, packet_id: int) -> int:
        """Assigns a new origin to a packet with this id."""
        self._last = self._last % _MAX_ORIGIN + 1
        index = self._last % KEPT_IDS
        self._ids[index], self._origins[index] = packet_id, self._last
        return self._last

    def id(self, origin: int) -> int:
        """The packet id of an origin; 0 if the origin is no longer remembered."""
        index = origin % KEPT_IDS
        return self._ids[index] if self._origins[index] == origin else 0


class _PacketSender:
    """Sends the packets that leave the switch to a client."""

    def __init__(self, frames: IoLoop, device_id: int, ids: PacketIds, context: _Context) -> None:
        self._frames = frames
        self._device_id = device_id
        self._ids = ids
        self._context = context
        self._wakeup = asyncio.Event()
        self._batch_sent = asyncio.Event()
        self._ended = False

    async def wait_for_space(self) -> None:
        """Waits until fewer than `MOST_WAITING` packets wait for the client."""
        while self._frames.waiting() >= MOST_WAITING:
            self._batch_sent.clear()
            await self._batch_sent.wait()

    def end(self) -> None:
        """To be called when the client sends no more packets: `run` then returns when the switch is empty."""
        self._ended = True
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            frames = self._frames.take_frames(_BATCH)
            for port, origin, data in frames:
                packet = Packet(id=self._ids.id(origin), device_id=self._device_id, port=port, packet=data)
                await self._context.write(packet.SerializeToString())
            self._batch_sent.set()
            if frames:
                continue
            if self._ended and self._frames.idle():
                return
            if self._ended:
                await asyncio.sleep(_POLL_S)
            else:
                await self._wait_for_frames()

    async def _wait_for_frames(self) -> None:
        """Waits until frames leave the switch or `end` is called."""
        # watched only here: while a client stalls, the descriptor stays readable and would cause a busy loop
        loop, readable = asyncio.get_running_loop(), self._frames.frames_fd
        self._wakeup.clear()
        loop.add_reader(readable, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            loop.remove_reader(readable)
