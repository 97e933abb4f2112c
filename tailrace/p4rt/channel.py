# SPDX-License-Identifier: Apache-2.0
"""gRPC channels to one switch, asynchronous and blocking.

Calls and errors are the same for both (client.py); how responses and the stream are awaited differs.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import grpc.aio
from finsy.proto import p4r_grpc

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.tls import Tls

MOST_WAITING = 1024
"""Maximum number of messages queued for the stream; with more messages the switch counts as stalled."""

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # the errors of a batch are in trailers
    ("grpc.max_metadata_size", 1 << 20),
    # for a quick reconnection to a switch that has restarted
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]
_CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class SwitchAddress:
    """The address of a switch: a gRPC target such as `127.0.0.1:50051` or `unix:/tmp/leaf1.sock`, and its
    device id.
    """

    address: str
    device_id: int


class StreamEndedError(Exception):
    """The stream has ended without an error."""


class MessageStream(Protocol):
    """An open StreamChannel. `send` and `receive` raise StreamEndedError when the stream has ended."""

    def send(self, message: p4r.StreamMessageRequest) -> None:
        """Queues a message. Raises queue.Full when the switch is stalled."""
        ...

    async def receive(self, timeout_s: float | None) -> p4r.StreamMessageResponse | None:
        """The next message; None after the timeout. Raises grpc.RpcError when the switch ends the stream."""
        ...

    async def close(self) -> None: ...


class Channel(ABC):
    """An open channel of grpc or grpc.aio. `unary` and `all` await the calls that `stub` makes."""

    def __init__(self, kind: Any, address: str, tls: Tls | None) -> None:
        """Args: kind: makes the channel: grpc, grpc.aio, or a p4rt.grpc_in_memory.InMemoryGrpc."""
        if tls is None:
            self.raw = kind.insecure_channel(address, options=_OPTIONS)
        else:
            credentials = tls.credentials().to_client_credentials()
            self.raw = kind.secure_channel(address, credentials, options=_OPTIONS)
        self.stub: Any = p4r_grpc.P4RuntimeStub(self.raw)

    @abstractmethod
    async def unary(self, call: Any) -> Any:
        """The response of a unary call. Raises grpc.RpcError."""

    @abstractmethod
    async def all(self, call: Any) -> list[Any]:
        """The responses of a streaming call. Raises grpc.RpcError."""

    @abstractmethod
    def stream(self) -> MessageStream:
        """Opens a StreamChannel."""


class LoopChannel(Channel):
    """A channel in an event loop."""

    def __init__(self, address: str, tls: Tls | None, kind: Any = grpc.aio) -> None:
        super().__init__(kind, address, tls)

    async def unary(self, call: Any) -> Any:
        return await call

    async def all(self, call: Any) -> list[Any]:
        return [response async for response in call]

    def stream(self) -> MessageStream:
        return _LoopStream(self.stub.StreamChannel())


class BlockingChannel(Channel):
    """A blocking channel. Its coroutines never suspend, so `run_at_once` can run them without a loop."""

    def __init__(self, address: str, tls: Tls | None) -> None:
        super().__init__(grpc, address, tls)

    async def unary(self, call: Any) -> Any:
        return call

    async def all(self, call: Any) -> list[Any]:
        return list(call)

    def stream(self) -> MessageStream:
        return _BlockingStream(self.stub)


class _LoopStream:
    def __init__(self, call: Any) -> None:
        self._call = call
        self._waiting: asyncio.Queue[p4r.StreamMessageRequest] = asyncio.Queue(MOST_WAITING)
        self._writer = asyncio.create_task(self._write_out())
        self._reading: asyncio.Task[Any] | None = None

    def send(self, message: p4r.StreamMessageRequest) -> None:
        if self._writer.done():
            raise StreamEndedError
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            raise queue.Full from None

    async def _write_out(self) -> None:
        """Writes the queued messages, in one task.

        gRPC allows one write at a time, and a cancelled write would cancel the stream.
        """
        try:
            while True:
                await self._call.write(await self._waiting.get())
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            self._call.cancel()  # ends `receive`, too

    async def receive(self, timeout_s: float | None) -> p4r.StreamMessageResponse | None:
        if timeout_s is None and self._reading is None:
            return self._message(await self._read())
        # a cancelled read would cancel the stream, too, so it continues after the timeout
        reading = self._reading = self._reading or asyncio.ensure_future(self._read())
        done, _ = await asyncio.wait({reading}, timeout=timeout_s)
        if not done:
            return None
        self._reading = None
        return self._message(reading.result())

    async def _read(self) -> Any:
        try:
            return await self._call.read()
        except (grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise StreamEndedError from error

    @staticmethod
    def _message(message: Any) -> p4r.StreamMessageResponse:
        if not isinstance(message, p4r.StreamMessageResponse):
            raise StreamEndedError
        return message

    async def close(self) -> None:
        tasks = [task for task in (self._writer, self._reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._call.cancel()


class _BlockingStream:
    def __init__(self, stub: Any) -> None:
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue(MOST_WAITING)
        self._received: queue.Queue[p4r.StreamMessageResponse | Exception] = queue.Queue()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, message: p4r.StreamMessageRequest) -> None:
        self._requests.put_nowait(message)

    def _read(self) -> None:
        try:
            for message in self._call:
                self._received.put(message)
            self._received.put(StreamEndedError())
        except grpc.RpcError as error:
            self._received.put(error)

    async def receive(self, timeout_s: float | None) -> p4r.StreamMessageResponse | None:
        try:
            message = self._received.get(timeout=timeout_s if timeout_s is None else max(timeout_s, 0.0))
        except queue.Empty:
            return None
        if isinstance(message, Exception):
            self._received.put(message)  # so that further calls raise it, too
            raise message
        return message

    async def close(self) -> None:
        self._call.cancel()
        with suppress(queue.Full):  # wakes gRPC's writer, which waits only if the queue is empty
            self._requests.put_nowait(None)
        self._reader.join(_CLOSE_S)
