# SPDX-License-Identifier: Apache-2.0
"""The gRPC data plane, packets without interfaces, as in simple_switch_grpc: `--dp-grpc-server-addr`.

One client at a time sends packets and receives all packets that leave the switch, each with the id of the
packet that caused it. When the client closes its half, it receives the rest, and the call ends when the
switch is empty. A slow client exerts backpressure on the ports, as a busy link does.
"""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from tailrace.p4rt.dataplane import DOWN, SERVICE, SET_STATUS, STREAM, UP, Packet, PortStatus, PortStatusSet
from tailrace.p4rt.status import exhausted, invalid
from tailrace.switch.core.types import PortError
from tailrace.switch.p4runtime.calls import with_status

KEPT_IDS = 1 << 20
"""Packets whose ids are kept; an older packet has none."""

MOST_WAITING = 1024
"""Packets that the client has not taken; with so many, none of its packets is received."""

_MOST_ORIGIN = (1 << 32) - 1
_AT_ONCE = 64
_LOOK_S = 0.002
"""Polling interval until the switch is empty."""

_Context = grpc.aio.ServicerContext[bytes, bytes]


class Frames(Protocol):
    """The ports without interfaces: see switch.daemon.ports.IoLoop."""

    @property
    def taken_fd(self) -> int:
        """Readable while `taken` may have frames."""
        ...

    def give(self, port: int, data: bytes, origin: int = 0) -> None:
        """A port receives a frame now; PortError: it cannot."""
        ...

    def listen(self, on: bool) -> None:
        """Whether a client takes frames, else they are dropped."""
        ...

    def taken(self, most: int) -> list[tuple[int, int, bytes]]:
        """Port, origin and bytes of frames that left."""
        ...

    def waiting(self) -> int:
        """The number of frames that `taken` has."""
        ...

    def idle(self) -> bool:
        """Whether neither `taken` nor the switch has frames."""
        ...

    def set_port(self, port: int, up: bool) -> None:
        """Sets a port up or down; PortError: there is none."""
        ...


class DataplaneService:
    """The service for one device."""

    def __init__(self, frames: Frames, device_id: int, port_changed: Callable[[int, bool], None]) -> None:
        """`port_changed` is called with the status of ports that are set."""
        self._frames = frames
        self._device_id = device_id
        self._port_changed = port_changed
        self._taken = False
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
            raise invalid(f"no {message.DESCRIPTOR.full_name}") from None
        if request.device_id != self._device_id:
            raise invalid(f"device_id: expected {self._device_id}, found {request.device_id}")
        return request

    async def _stream(self, requests: AsyncIterator[bytes], context: _Context) -> None:
        if self._taken:
            raise exhausted("another client has the packets: there can be one at a time")
        self._taken = True
        ids = self._ids = self._ids or PacketIds()
        ids.forget()
        sending = _PacketSender(self._frames, self._device_id, ids, context)
        self._frames.listen(True)
        sender = asyncio.create_task(sending.run())
        try:
            async for octets in requests:
                request = self._parsed(Packet, octets)
                # empty packets are ignored, as in BMv2
                if not request.packet:
                    continue
                await sending.room()
                try:
                    self._frames.give(request.port, request.packet, ids.origin(request.id))
                except PortError as error:
                    raise invalid(str(error)) from None
            sending.end()
            await sender
        finally:
            # the next client needs the descriptor that this sender watches
            sender.add_done_callback(self._gone)
            sender.cancel()

    def _gone(self, sender: asyncio.Task[None]) -> None:
        if not sender.cancelled():
            sender.exception()  # retrieved, so that asyncio logs none
        self._taken = False
        with contextlib.suppress(PortError):  # the switch ends
            self._frames.listen(False)


class PacketIds:
    """The clients' 64-bit ids of packets, by the switch's 32-bit origins."""

    def __init__(self) -> None:
        self._ids = array("Q", bytes(8 * KEPT_IDS))
        self._last = 0
        self.forget()

    def forget(self) -> None:
        """Forgets the ids of the packets in the switch, for the next client."""
        self._origins = array("I", bytes(4 * KEPT_IDS))

    def origin(self, packet_id: int) -> int:
        """A new origin for a packet."""
        self._last = self._last % _MOST_ORIGIN + 1
        place = self._last % KEPT_IDS
        self._ids[place], self._origins[place] = packet_id, self._last
        return self._last

    def id(self, origin: int) -> int:
        """The id of a packet; 0: it has none any more."""
        place = origin % KEPT_IDS
        return self._ids[place] if self._origins[place] == origin else 0


class _PacketSender:
    """Sends a client the packets that leave the switch."""

    def __init__(self, frames: Frames, device_id: int, ids: PacketIds, context: _Context) -> None:
        self._frames = frames
        self._device_id = device_id
        self._ids = ids
        self._context = context
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = False

    async def room(self) -> None:
        """Waits until the client has taken most packets."""
        while self._frames.waiting() >= MOST_WAITING:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """The client sends no more: `run` returns when the switch is empty."""
        self._ended = True
        self._some.set()

    async def run(self) -> None:
        while True:
            frames = self._frames.taken(_AT_ONCE)
            for port, origin, data in frames:
                packet = Packet(id=self._ids.id(origin), device_id=self._device_id, port=port, packet=data)
                await self._context.write(packet.SerializeToString())
            self._room.set()
            if frames:
                continue
            if self._ended and self._frames.idle():
                return
            if self._ended:
                await asyncio.sleep(_LOOK_S)
            else:
                await self._more()

    async def _more(self) -> None:
        """Waits for frames, or for `end`."""
        # only meanwhile, as the descriptor stays readable while the client is stalled
        loop, readable = asyncio.get_running_loop(), self._frames.taken_fd
        self._some.clear()
        loop.add_reader(readable, self._some.set)
        try:
            await self._some.wait()
        finally:
            loop.remove_reader(readable)
