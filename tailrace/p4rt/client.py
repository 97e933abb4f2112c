# SPDX-License-Identifier: Apache-2.0
"""P4Runtime client of one switch over gRPC: its calls, the stream, and their errors.

    async with connect("leaf1", address) as client:     in an event loop
    connection = GrpcConnection("leaf1", …)             without an event loop (connection.py); the same code

finsy's client is not used: it limits every call to ten seconds, but a native switch may take longer to
compile a new program.
"""

from __future__ import annotations

import json
import queue
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import msgspec

from tailrace.p4rt import requests
from tailrace.p4rt.channel import Channel, LoopChannel, MessageStream, StreamEndedError, SwitchAddress
from tailrace.p4rt.errors import (
    ElectionError,
    NoResponseError,
    ReadError,
    RefusedError,
    SwitchError,
    UnreachableError,
    UnsupportedError,
    WriteError,
)
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.requests import CALL_S, PUSH_S
from tailrace.p4rt.status import Code, refusals
from tailrace.p4rt.tls import Tls

_NO_PIPELINE = (
    "no program is loaded with its P4Info; push it (tailrace push SWITCH NAME.json), or start"
    " tailrace_switch_grpc with NAME.json and --p4info NAME.p4info.txtpb"
)
_STREAM = "stream"


class Client:
    """A client of one switch. Requests that change the switch contain `election_id`."""

    def __init__(
        self,
        name: str,
        address: SwitchAddress,
        channel: Channel,
        *,
        call_s: float = CALL_S,
        push_s: float = PUSH_S,
        encrypted: bool = False,
    ) -> None:
        self._name = name
        self._device_id = address.device_id
        self._address = address.address
        self._channel = channel
        self._call_s = call_s
        self._push_s = push_s
        self._encrypted = encrypted
        self._stream: MessageStream | None = None
        self.election_id = 0

    @property
    def name(self) -> str:
        """The switch's name."""
        return self._name

    def _failure(self, error: Any, what: str, kind: type[RefusedError] = RefusedError) -> SwitchError:
        """The SwitchError for a failed call; `error`: a grpc.RpcError that is also a grpc.Call."""
        code, details = error.code(), _line(error.details() or "")
        if code is grpc.StatusCode.UNAVAILABLE:
            why = f": {details}" if self._encrypted else ""
            return UnreachableError(self._name, f"no P4Runtime server answers at {self._address}{why}")
        if code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
            return UnreachableError(self._name, f"no answer at {self._address}: {code.value[1]}")
        if what is _STREAM and code is grpc.StatusCode.INVALID_ARGUMENT:  # P4Runtime §5.3
            return ElectionError(self._name, f"another client has the election id {self.election_id}")
        refused = refusals(error.trailing_metadata() or ())
        failures = {index: f"{failed.code.name}: {failed.message}" for index, failed in refused.items()}
        first = next(iter(failures.values()), f"{code.name}: {details or 'no reason given'}")
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        name = next((failed.code.name for failed in refused.values()), code.name)
        return kind(self._name, f"{what} was refused: {first}{more}", name, failures)

    def _election(self) -> p4r.Uint128:
        message = p4r.Uint128()
        requests.set_election(message, self.election_id)
        return message

    # ---- calls ----

    async def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self._device_id, entities=entities)
        try:
            responses = await self._channel.all(self._channel.stub.Read(request, timeout=self._call_s))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                raise UnsupportedError(self._name, _NO_PIPELINE) from error
            raise self._failure(error, "read", ReadError) from error
        return [entity for response in responses for entity in response.entities]

    def write_request(self, updates: Sequence[p4r.Update]) -> p4r.WriteRequest:
        """The request that `carry_out` sends."""
        return p4r.WriteRequest(device_id=self._device_id, election_id=self._election(), updates=updates)

    async def carry_out(self, request: p4r.WriteRequest) -> None:
        """Sends a Write request. Raises WriteError or another SwitchError."""
        try:
            await self._channel.unary(self._channel.stub.Write(request, timeout=self._call_s))
        except grpc.RpcError as error:
            raise self._failure(error, "write", WriteError) from error

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        await self.carry_out(self.write_request(updates))

    async def _pipeline(self, what: str, wanted: int) -> p4r.ForwardingPipelineConfig:
        """The parts `wanted` of the pipeline's configuration; empty: the switch runs no program."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self._device_id)
        request.response_type = wanted  # type: ignore[assignment]
        call = self._channel.stub.GetForwardingPipelineConfig
        try:
            response = await self._channel.unary(call(request, timeout=self._call_s))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:  # BMv2 without a program
                return p4r.ForwardingPipelineConfig()
            raise self._failure(error, f"reading the {what}") from error
        config: p4r.ForwardingPipelineConfig = response.config
        return config

    async def cookie(self) -> int | None:
        config = await self._pipeline("pipeline's cookie", p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY)
        return config.cookie.cookie if config.HasField("cookie") else None

    async def config(self) -> p4r.ForwardingPipelineConfig:
        """The pipeline's configuration; empty: the switch runs no program.

        Raises:
            SwitchError: the switch is unreachable, or rejects the call.
        """
        return await self._pipeline("program", p4r.GetForwardingPipelineConfigRequest.ALL)

    async def p4info(self) -> p4i.P4Info:
        """The program's P4Info.

        Raises:
            UnsupportedError: no program is loaded.
            SwitchError: the switch is unreachable.
        """
        wanted = p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
        info = (await self._pipeline("program's P4Info", wanted)).p4info
        if not info.ByteSize():
            raise UnsupportedError(self._name, _NO_PIPELINE)
        return info

    async def push(self, program: P4Program) -> None:
        await self.set_pipeline(requests.push_request(program), program.name)

    async def set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest, name: str) -> None:
        """Adds device id and election id to a request and sends it. Raises SwitchError.

        Args:
            name: the program's name, for the error.
        """
        request.device_id = self._device_id
        requests.set_election(request.election_id, self.election_id)
        try:
            await self._channel.unary(
                self._channel.stub.SetForwardingPipelineConfig(request, timeout=self._push_s)
            )
        except grpc.RpcError as error:
            raise self._failure(error, f"program {name}") from error

    async def statistics(self) -> dict[str, Any] | None:
        """The traffic manager's counts; None: the switch is not a native switch.

        Raises:
            SwitchError: the switch is unreachable, or rejects the call.
        """
        call = self._channel.raw.unary_unary(f"/{'/'.join(requests.STATISTICS)}", bytes, bytes)
        try:
            text = await self._channel.unary(call(str(self._device_id).encode(), timeout=self._call_s))
        except grpc.RpcError as error:
            failure = self._failure(error, "reading statistics")
            if isinstance(failure, RefusedError) and failure.code == Code.UNIMPLEMENTED.name:
                return None
            raise failure from error
        counts: dict[str, Any] = json.loads(text)
        return counts

    async def set_rate(self, port: int, rate_bps: int) -> None:
        """Sets the rate of a port of a native switch. Raises SwitchError."""
        call = self._channel.raw.unary_unary(f"/{'/'.join(requests.SET_RATE)}", bytes, bytes)
        request = msgspec.json.encode(requests.PortRate(self._device_id, port, rate_bps))
        try:
            await self._channel.unary(call(request, timeout=self._call_s))
        except grpc.RpcError as error:
            raise self._failure(error, f"the rate of port {port}") from error

    async def traces(self, request: requests.TraceRequest) -> list[bytes] | None:
        """The traces of a packet, each a switch.trace.Trace as JSON; None: the switch is not a native switch.

        Raises:
            SwitchError: the switch is unreachable, or rejects the call.
        """
        call = self._channel.raw.unary_stream(f"/{'/'.join(requests.TRACE)}", bytes, bytes)
        try:
            traces = await self._channel.all(call(msgspec.json.encode(request), timeout=self._push_s))
        except grpc.RpcError as error:
            failure = self._failure(error, "tracing a packet")
            if isinstance(failure, RefusedError) and failure.code == Code.UNIMPLEMENTED.name:
                return None
            raise failure from error
        if not traces:
            raise RefusedError(self._name, "tracing a packet: expected a trace, found an empty response")
        return traces

    # ---- stream ----

    def send(self, message: p4r.StreamMessageRequest) -> None:
        """Queues a message on the stream; the first message opens the stream.

        Raises:
            UnreachableError: the stream has ended, or the switch is stalled.
        """
        if self._stream is None:
            self._stream = self._channel.stream()
        try:
            self._stream.send(message)
        except StreamEndedError:
            raise UnreachableError(self._name, f"the stream to {self._address} has ended") from None
        except queue.Full:
            raise UnreachableError(self._name, f"the switch at {self._address} takes no messages") from None

    async def receive(self, timeout_s: float | None = None) -> p4r.StreamMessageResponse:
        """The next message of the stream, which `send` has opened.

        Raises:
            NoResponseError: no message arrives before the timeout.
            ElectionError: another client has the election id.
            SwitchError: the stream has ended.
        """
        assert self._stream is not None, "the first message that is sent opens the stream"
        try:
            message = await self._stream.receive(timeout_s)
        except grpc.RpcError as error:
            raise self._failure(error, _STREAM) from error
        except StreamEndedError as error:
            raise UnreachableError(self._name, f"the switch at {self._address} closed the stream") from error
        if message is None:
            raise NoResponseError(self._name, f"no message in {timeout_s:g} s")
        return message

    def announce(self, election_id: int) -> None:
        """Requests to be the primary controller; the response arrives on the stream."""
        self.election_id = election_id
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = self._device_id
        requests.set_election(message.arbitration.election_id, election_id)
        self.send(message)

    async def become_primary(self, election_id: int) -> None:
        """Waits until this client is primary.

        It announces `election_id`. If there is no primary, but a client that has disconnected had a higher
        id, no lower id can become primary (P4Runtime §5.3); then this client announces the higher id.

        Raises:
            ElectionError: another controller is primary, or uses the id.
            SwitchError: the switch is unreachable, or does not respond.
        """
        while True:
            self.announce(election_id)
            response = await self.receive(self._call_s)
            while not response.HasField("arbitration"):
                response = await self.receive(self._call_s)
            update = response.arbitration
            if update.status.code == Code.OK:
                return
            highest = requests.election_of(update.election_id)
            if update.status.code != Code.NOT_FOUND or highest <= election_id:
                raise ElectionError(self._name, f"another controller is primary (election id {highest})")
            election_id = highest

    async def close(self) -> None:
        """Closes the stream; the switch then removes this client from the election."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()


def _line(text: str) -> str:
    return " ".join(text.split())


@asynccontextmanager
async def connect(
    name: str,
    address: SwitchAddress,
    tls: Tls | None = None,
    *,
    calls: Any = grpc.aio,
    call_s: float = CALL_S,
    push_s: float = PUSH_S,
) -> AsyncIterator[Client]:
    """A client of the switch at an address; nothing is sent yet.

    Args:
        name: the switch's name, for messages.
        address: the switch's address and device id.
        tls: TLS files; None: not encrypted.
        calls: makes the channel: grpc.aio, or p4rt.grpc_in_memory.InMemoryGrpc.
        call_s: timeout of a call in seconds.
        push_s: timeout of a call that sets a program, or traces a packet.

    Raises:
        TlsError: TLS files are invalid.
    """
    channel = LoopChannel(address.address, tls, calls)
    async with channel.raw:
        encrypted = tls is not None
        client = Client(name, address, channel, call_s=call_s, push_s=push_s, encrypted=encrypted)
        try:
            yield client
        finally:
            await client.close()
