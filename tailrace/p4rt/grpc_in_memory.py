# SPDX-License-Identifier: Apache-2.0
"""gRPC within one event loop: servers and channels connected in memory, with delays and faults.

    memory = InMemoryGrpc(ChannelModel(delay_s=lambda address: 0.001))
    memory.serve("leaf1", [rpc_handler(service)])
    async with connect("leaf1", SwitchAddress("leaf1", 1), calls=memory) as client: ...

Handlers are the same as in a real server and receive the same octets; they return their status by `set_code`
(switch.p4runtime.calls), not by `abort`. Clients use the interface of grpc.aio.
Messages of one call and direction stay in order, as with HTTP/2; calls may overtake each other. There is no
thread and no socket, so a run in virtual time is deterministic. For the same reason calls are stored in
dictionaries, which have an order, not in sets.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import grpc
import grpc.aio

WINDOW = 256
"""Flow control, as with HTTP/2: maximum number of messages of one call and direction in flight or unread."""

_CLOSED = "the channel was closed"
_LOST = "the connection was lost"


class RpcFault(Enum):
    """A fault of a call."""

    NONE = "none"
    REQUEST_LOST = "request lost"
    """The call is not executed, and the client receives a connection error."""
    RESPONSE_LOST = "answer lost"
    """The call is executed, and the client receives a connection error."""
    NO_RESPONSE = "silence"
    """The call is executed, and the client's deadline expires."""
    DUPLICATED = "twice"
    """The call is executed twice, as by a proxy that retries; the client receives the second response."""


@dataclass(slots=True)
class ChannelModel:
    """Delays and faults, by the address of the server.

    delay_s: returns the delay of the next message, in seconds.
    fault: returns the fault of the next call; its second argument is the method's name, such as `Write`.
    done: called for each call that a server has executed without an error, before its response.
    """

    delay_s: Callable[[str], float] = lambda _address: 0.0
    fault: Callable[[str, str], RpcFault] = lambda _address, _method: RpcFault.NONE
    done: Callable[[str, str], None] = lambda _address, _method: None


@dataclass(frozen=True, slots=True)
class _CallStatus:
    """The status of a call."""

    code: grpc.StatusCode
    details: str = ""
    trailing: tuple[tuple[str, str | bytes], ...] = ()

    def error(self) -> grpc.aio.AioRpcError:
        trailing = grpc.aio.Metadata(*self.trailing)
        return grpc.aio.AioRpcError(self.code, grpc.aio.Metadata(), trailing, self.details, None)


_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in the type stubs
_DONE = _CallStatus(grpc.StatusCode.OK)


class _Pipe:
    """One direction of a call: messages arrive in order, each after its delay; the last item is a status."""

    def __init__(self, delay_s: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._last_s = 0.0
        self._in_flight: deque[bytes | _CallStatus] = deque()
        self._arrived: deque[bytes | _CallStatus] = deque()
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._cut = False

    def send(self, item: bytes | _CallStatus) -> None:
        self._last_s = max(self._last_s, self._loop.time() + self._delay_s())
        self._in_flight.append(item)
        self._loop.call_at(self._last_s, self._arrive)

    def _arrive(self) -> None:
        item = self._in_flight.popleft()  # the first item, since simultaneous timers fire in any order
        if not self._cut:
            self._arrived.append(item)
            self._readable.set()

    def cut(self, end: _CallStatus) -> None:
        """Closes the pipe: messages in flight are lost; messages that have arrived can still be read."""
        if not self._cut:
            self._cut = True
            self._arrived.append(end)
            self._readable.set()
            self._writable.set()

    async def wait_until_writable(self) -> None:
        """Waits while the window is full."""
        while not self._cut and len(self._in_flight) + len(self._arrived) >= WINDOW:
            self._writable.clear()
            await self._writable.wait()

    async def take(self) -> bytes | _CallStatus:
        """The next message; a status is returned again by further calls."""
        while not self._arrived:
            self._readable.clear()
            await self._readable.wait()
        item = self._arrived[0]
        if not isinstance(item, _CallStatus):
            self._arrived.popleft()
            self._writable.set()
        return item


class _Context:
    """The part of grpc.aio.ServicerContext that handlers use."""

    def __init__(self, responses: _Pipe, serialize: Callable[[Any], bytes] | None, *, mute: bool) -> None:
        """Args: mute: whether a fault discards all responses."""
        self._responses = responses
        self._serialize = serialize
        self._mute = mute
        self._trailing: tuple[tuple[str, str | bytes], ...] = ()
        self._code, self._details = grpc.StatusCode.OK, ""

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._trailing = tuple(trailing_metadata)

    def status(self) -> _CallStatus | None:
        """The error status that the handler has set; None: OK."""
        if self._code == grpc.StatusCode.OK:
            return None
        return _CallStatus(self._code, self._details, self._trailing)

    async def write(self, message: Any) -> None:
        if self._mute:
            return
        await self._responses.wait_until_writable()
        self._responses.send(message if self._serialize is None else self._serialize(message))


@dataclass(frozen=True, slots=True)
class _Details(grpc.HandlerCallDetails):
    """The method for which a handler is looked up."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


class _Call:
    """One call, client and server side."""

    def __init__(
        self, channel: _Channel, method: str, serialize: Callable[[Any], bytes], timeout_s: float | None
    ) -> None:
        address = channel.address
        model = channel.memory.model
        self._channel = channel
        self._method = method
        self._serialize = serialize
        self._fault = model.fault(address, method.rpartition("/")[2])
        self._loop = asyncio.get_running_loop()
        self._requests = _Pipe(lambda: model.delay_s(address))
        self._responses = _Pipe(lambda: model.delay_s(address))
        self._server: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.over = False
        channel.calls[self] = None
        if timeout_s is not None:
            late = _CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
            self._deadline = self._loop.call_later(timeout_s, self.finish, late)
        self._loop.call_later(model.delay_s(address), self._arrive_at_server)

    # ---- client side ----

    def send(self, request: Any) -> None:
        self._requests.send(self._serialize(request))

    async def wait_until_writable(self) -> None:
        await self._requests.wait_until_writable()

    async def take(self) -> bytes | None:
        """The next response; None after the last response.

        Raises:
            grpc.aio.AioRpcError: the call has failed.
        """
        item = await self._responses.take()
        if isinstance(item, bytes):
            return item
        self.finish(item)
        if item is _DONE:
            return None
        raise item.error()

    def finish(self, end: _CallStatus) -> None:
        """Finishes the call with a status for the client; the server is notified after a delay."""
        if self.over:
            return
        self.over = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._channel.calls.pop(self, None)
        self._responses.cut(end)
        self._loop.call_later(self._channel.memory.model.delay_s(self._channel.address), self.stop)

    # ---- server side ----

    def _arrive_at_server(self) -> None:
        """The call arrives at the address of the server."""
        server = self._channel.memory.servers.get(self._channel.address)
        if server is None or self.over:
            self._responses.send(_CallStatus(grpc.StatusCode.UNAVAILABLE, "failed to connect"))
        elif self._fault is RpcFault.REQUEST_LOST:
            self._responses.send(_CallStatus(grpc.StatusCode.UNAVAILABLE, _LOST))
        else:
            self._server = self._loop.create_task(self._serve(server))
            server.tasks[self._server] = None
            self._server.add_done_callback(server.tasks.pop)

    def stop(self) -> None:
        """Cancels the handler."""
        if self._server is not None:
            self._server.cancel()

    async def _serve(self, server: _Server) -> None:
        handler = server.handler(self._method)
        serialize = None if handler is None else handler.response_serializer
        mute = self._fault in (RpcFault.RESPONSE_LOST, RpcFault.NO_RESPONSE)
        context = _Context(self._responses, serialize, mute=mute)
        end = _CallStatus(grpc.StatusCode.UNAVAILABLE, _LOST)
        try:
            if handler is None:
                end = _CallStatus(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
            else:
                await self._handle(handler, context)
                end = context.status() or _DONE
                if end is _DONE:
                    self._channel.memory.model.done(self._channel.address, self._method.rpartition("/")[2])
        except Exception as error:  # noqa: BLE001 - gRPC's status for uncaught exceptions
            end = _CallStatus(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}")
        finally:
            self._requests.cut(_DONE)
            if self._fault is RpcFault.RESPONSE_LOST:
                end = _CallStatus(grpc.StatusCode.UNAVAILABLE, _LOST)
            if self._fault is not RpcFault.NO_RESPONSE:
                self._responses.send(end)

    async def _handle(self, handler: Any, context: _Context) -> None:
        if handler.request_streaming:
            await handler.stream_stream(self._messages(), context)
            return
        request = await self._requests.take()
        if isinstance(request, _CallStatus):
            return
        if handler.response_streaming:
            await handler.unary_stream(request, context)
        else:
            if self._fault is RpcFault.DUPLICATED:
                await handler.unary_unary(request, context)
                context.set_code(grpc.StatusCode.OK)
            response = await handler.unary_unary(request, context)
            if context.status() is None:
                await context.write(response)

    async def _messages(self) -> AsyncIterator[bytes]:
        while isinstance(octets := await self._requests.take(), bytes):
            yield octets


class _Method:
    """A method of a channel: calling it starts a call. `kind`: _Unary or _Stream."""

    def __init__(
        self,
        channel: _Channel,
        method: str,
        kind: Callable[[_Call, Callable[[bytes], Any]], Any],
        request_serializer: Callable[[Any], bytes] = bytes,
        response_deserializer: Callable[[bytes], Any] = bytes,
        **_options: Any,
    ) -> None:
        self._channel, self._method, self._kind = channel, method, kind
        self._serialize, self._deserialize = request_serializer, response_deserializer

    def __call__(self, request: Any = None, timeout: float | None = None) -> Any:
        call = _Call(self._channel, self._method, self._serialize, timeout)
        if request is not None:
            call.send(request)
        return self._kind(call, self._deserialize)


class _Unary:
    """A call with one response, which is awaited."""

    def __init__(self, call: _Call, parse: Callable[[bytes], Any]) -> None:
        self._call, self._parse = call, parse

    def __await__(self) -> Generator[Any, None, Any]:
        return self._response().__await__()

    async def _response(self) -> Any:
        try:
            response = await self._call.take()
            await self._call.take()  # the status
        except asyncio.CancelledError:
            self._call.finish(_CallStatus(grpc.StatusCode.CANCELLED, _CLOSED))
            raise
        assert response is not None
        return self._parse(response)


class _Stream:
    """A call with many responses, and for stream_stream with many requests."""

    def __init__(self, call: _Call, parse: Callable[[bytes], Any]) -> None:
        self._call, self._parse = call, parse

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while (octets := await self._call.take()) is not None:
                yield self._parse(octets)
        finally:
            self.cancel()

    async def read(self) -> Any:
        """The next message; grpc.aio.EOF after the last message."""
        octets = await self._call.take()
        return _EOF if octets is None else self._parse(octets)

    async def write(self, message: Any) -> None:
        """Sends a message of a stream."""
        if self._call.over:
            raise asyncio.InvalidStateError("the call is over")
        await self._call.wait_until_writable()
        self._call.send(message)

    def cancel(self) -> None:
        """Cancels the call."""
        self._call.finish(_CallStatus(grpc.StatusCode.CANCELLED, _CLOSED))


class _Channel:
    """A channel to one address: the part of grpc.aio.Channel that clients use."""

    def __init__(self, memory: InMemoryGrpc, address: str) -> None:
        self.memory, self.address = memory, address
        self.calls: dict[_Call, None] = {}
        memory.channels[self] = None

    async def __aenter__(self) -> _Channel:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.memory.channels.pop(self, None)
        self.end(_CallStatus(grpc.StatusCode.CANCELLED, _CLOSED))

    def end(self, end: _CallStatus) -> None:
        """Finishes all calls with a status."""
        for call in tuple(self.calls):
            call.finish(end)

    def unary_unary(self, method: str, *serializers: Any, **options: Any) -> _Method:
        """A call with one response; arguments as in grpc.aio."""
        return _Method(self, method, _Unary, *serializers, **options)

    def unary_stream(self, method: str, *serializers: Any, **options: Any) -> _Method:
        """A call with many responses; `stream_stream` has many requests, too."""
        return _Method(self, method, _Stream, *serializers, **options)

    stream_stream = unary_stream


class _Server:
    """The server at one address."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]]) -> None:
        self._handlers = handlers
        self.tasks: dict[asyncio.Task[None], None] = {}

    def handler(self, method: str) -> grpc.RpcMethodHandler[Any, Any] | None:
        handlers = (handler.service(_Details(method)) for handler in self._handlers)
        return next((handler for handler in handlers if handler is not None), None)


class InMemoryGrpc:
    """All servers and channels of one event loop, in place of `grpc.aio`."""

    def __init__(self, model: ChannelModel | None = None) -> None:
        self.model = model or ChannelModel()
        self.servers: dict[str, _Server] = {}
        self.channels: dict[_Channel, None] = {}

    def serve(self, address: str, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]]) -> None:
        """Starts a server at an address; it replaces an earlier server there."""
        self.end(address)
        self.servers[address] = _Server(handlers)

    def end(self, address: str) -> None:
        """Stops the server at an address without notice: calls fail, and new calls are not connected."""
        server = self.servers.pop(address, None)
        if server is not None:
            for task in tuple(server.tasks):
                task.cancel()
            self.break_off(address)

    def break_off(self, address: str) -> None:
        """Breaks all connections with an address; its server continues to run."""
        for channel in tuple(self.channels):
            if channel.address == address:
                channel.end(_CallStatus(grpc.StatusCode.UNAVAILABLE, _LOST))

    def insecure_channel(self, address: str, options: object = None) -> _Channel:  # noqa: ARG002
        """A channel to an address, which need not have a server."""
        return _Channel(self, address)
