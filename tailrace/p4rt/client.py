# SPDX-License-Identifier: Apache-2.0
"""P4Runtime of one switch over gRPC: calls and the stream, on finsy's stubs and error decoding.

finsy's own client holds every call to ten seconds; a native switch may take longer to compile a program that
it meets for the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from finsy import P4ClientError
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import p4r, p4r_grpc

from tailrace.p4rt.errors import ElectionError, ReadError, SwitchError, UnreachableError, WriteError
from tailrace.p4rt.programs import Program
from tailrace.p4rt.tls import Tls

CALL_S = 30.0
PUSH_S = 300.0
MOST_WAITING = 1024
"""Messages for the stream that may wait; more means that the switch reads none."""

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # errors of a batch travel in trailers
    ("grpc.max_metadata_size", 1 << 20),
    # a switch that comes back is to be found soon, whatever its channel has learned before
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a switch is: a gRPC target such as `127.0.0.1:50051` or `unix:/tmp/leaf1.sock`, and its device
    id.
    """

    address: str
    device_id: int


class Client:
    """An open channel to one switch. `election_id` goes with whatever changes the switch."""

    def __init__(self, name: str, address: Address, channel: grpc.aio.Channel) -> None:
        self._name = name
        self._device_id = address.device_id
        self._address = address.address
        self._stub: Any = p4r_grpc.P4RuntimeStub(channel)
        self._stream: Any = None
        self._writer: asyncio.Task[None] | None = None
        self._waiting: asyncio.Queue[p4r.StreamMessageRequest] = asyncio.Queue(MOST_WAITING)
        self.election_id = p4r.Uint128()

    @property
    def name(self) -> str:
        """The switch's name."""
        return self._name

    def _fail(self, error: grpc.RpcError, what: str, kind: type[SwitchError]) -> NoReturn:
        known = P4ClientError(error, what)
        if known.code in (
            GRPCStatusCode.UNAVAILABLE,
            GRPCStatusCode.CANCELLED,
            GRPCStatusCode.DEADLINE_EXCEEDED,
        ):
            raise UnreachableError(
                self._name, f"no answer at {self._address}: {_line(known.message)}"
            ) from error
        if known.is_election_id_used:
            raise ElectionError(self._name, "another controller has the same election id") from error
        failures = {
            index: f"{one.canonical_code.name}: {one.message}" for index, one in known.details.items()
        }
        first = next(iter(failures.values()), f"{known.code.name}: {known.message}")
        text = f"{what} was refused: {_line(first)}"
        if len(failures) > 1:
            text += f" (and {len(failures) - 1} more)"
        if kind is WriteError:
            raise WriteError(self._name, text, failures) from error
        if kind is ReadError:
            codes = (one.canonical_code.name for one in known.details.values())
            raise ReadError(self._name, text, next(codes, known.code.name)) from error
        raise kind(self._name, text) from error

    # ---- calls ----

    async def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """See Endpoint."""
        request = p4r.ReadRequest(device_id=self._device_id, entities=requests)
        found: list[p4r.Entity] = []
        try:
            async for response in self._stub.Read(request, timeout=CALL_S):
                found.extend(response.entities)
        except grpc.RpcError as error:
            self._fail(error, "read", ReadError)
        return found

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        """See Endpoint."""
        request = p4r.WriteRequest(device_id=self._device_id, election_id=self.election_id, updates=updates)
        try:
            await self._stub.Write(request, timeout=CALL_S)
        except grpc.RpcError as error:
            self._fail(error, "write", WriteError)

    async def cookie(self) -> int | None:
        """See Endpoint."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self._device_id)
        request.response_type = p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        try:
            response = await self._stub.GetForwardingPipelineConfig(request, timeout=CALL_S)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:  # how BMv2 says that it runs none
                return None
            self._fail(error, "reading the pipeline's cookie", SwitchError)
        return response.config.cookie.cookie if response.config.HasField("cookie") else None

    async def push(self, program: Program) -> None:
        """See Endpoint."""
        request = p4r.SetForwardingPipelineConfigRequest(device_id=self._device_id)
        request.election_id.CopyFrom(self.election_id)
        request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(program.p4info)
        request.config.p4_device_config = program.json
        request.config.cookie.cookie = program.cookie
        try:
            await self._stub.SetForwardingPipelineConfig(request, timeout=PUSH_S)
        except grpc.RpcError as error:
            self._fail(error, f"program {program.name}", SwitchError)

    # ---- stream ----

    def send(self, message: p4r.StreamMessageRequest) -> None:
        """Sends a message on the stream, which the first one opens; it is on its way when this returns.

        Raises:
            UnreachableError: the stream has ended, or the switch takes nothing any more.
        """
        if self._stream is None:
            self._stream = self._stub.StreamChannel()
            self._writer = asyncio.create_task(self._write_out())
        if self._writer is None or self._writer.done():
            raise UnreachableError(self._name, f"the stream to {self._address} has ended")
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            raise UnreachableError(self._name, f"the switch at {self._address} takes no messages") from None

    async def _write_out(self) -> None:
        """Writes message after message. Alone: gRPC allows one write at a time, and a write that is
        cancelled, say with the question that it is for, would take the stream with it.
        """
        try:
            while True:
                await self._stream.write(await self._waiting.get())
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            self._stream.cancel()  # so that who receives learns of it

    async def close(self) -> None:
        """Ends the stream, and with it this client's part in the election."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        if self._stream is not None:
            self._stream.cancel()

    async def receive(self) -> p4r.StreamMessageResponse:
        """The next message of the stream.

        Raises:
            SwitchError: the stream has ended.
        """
        try:
            message = await self._stream.read()
        except grpc.RpcError as error:
            self._fail(error, "stream", SwitchError)
        except (grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise UnreachableError(self._name, f"the stream to {self._address} has ended") from error
        if not isinstance(message, p4r.StreamMessageResponse):
            raise UnreachableError(self._name, f"the switch at {self._address} has closed the stream")
        return message

    def announce(self, election_id: int) -> None:
        """Asks to be the primary controller with an election id; the answer comes on the stream."""
        self.election_id = p4r.Uint128(high=election_id >> 64, low=election_id & ((1 << 64) - 1))
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = self._device_id
        message.arbitration.election_id.CopyFrom(self.election_id)
        self.send(message)


def _line(text: str) -> str:
    return " ".join(text.split()) or "no reason given"


@asynccontextmanager
async def connect(name: str, address: Address, tls: Tls | None = None) -> AsyncIterator[Client]:
    """A client of the switch at an address; nothing is sent yet.

    Raises:
        TlsError: TLS files are no good.
    """
    if tls is None:
        channel = grpc.aio.insecure_channel(address.address, options=_OPTIONS)
    else:
        channel = grpc.aio.secure_channel(
            address.address, tls.credentials().to_client_credentials(), options=_OPTIONS
        )
    async with channel:
        client = Client(name, address, channel)
        try:
            yield client
        finally:
            await client.close()
