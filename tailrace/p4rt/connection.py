# SPDX-License-Identifier: Apache-2.0
"""Reading one switch over P4Runtime. Reads need no stream and no election (P4Runtime §13)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tailrace.p4rt.read_errors import (
    InspectError,
    NotOfferedError,
    SwitchRefusedError,
    SwitchUnreachableError,
)
from tailrace.p4rt.tls import Tls
from tailrace.words import SpecError
from tailrace.words.files import MOST_TEXT_BYTES, read_bytes
from tailrace.words.words import check_text

MOST_DEVICE_ID = (1 << 64) - 1
"""P4Runtime has 64 bits for it."""

TIMEOUT_S = 10.0
_STATISTICS = "/tailrace.Statistics/Get"
"""Beside P4Runtime, which has no place for such counts; BMv2 does not know it."""

_NO_PIPELINE = "no program is loaded; push one, or give its P4Info with --p4info FILE"
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", 1 << 20),
    ("grpc.enable_http_proxy", 0),
]


class Connection(Protocol):
    """How inspection reaches a switch."""

    name: str

    def p4info(self) -> p4i.P4Info:
        """The program's description. Raises InspectError."""
        ...

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """Everything that the patterns match. Raises InspectError."""
        ...


class GrpcConnection:
    """A channel to one switch."""

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        *,
        tls: Tls | None = None,
        p4info: p4i.P4Info | None = None,
    ) -> None:
        """Prepares the channel; nothing is sent yet.

        Args:
            name: what messages call the switch.
            address: host:port.
            device_id: of P4Runtime.
            tls: None: not encrypted.
            p4info: None: the switch is asked.

        Raises:
            SpecError: there can be no such address or device id.
        """
        check_text(address, f"{name}: address")
        if not 0 <= device_id <= MOST_DEVICE_ID:
            raise SpecError(f"{name}: device id {str(device_id)[:40]} is not between 0 and {MOST_DEVICE_ID}")
        self.name, self.address, self.device_id = name, address, device_id
        self._p4info = p4info
        if tls is None:
            self._channel = grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)
        else:
            credentials = tls.credentials().to_client_credentials()
            self._channel = grpc.secure_channel(address, credentials, options=_CHANNEL_OPTIONS)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()

    def p4info(self) -> p4i.P4Info:
        """The program's description, from the switch where none was given."""
        if self._p4info is None:
            request = p4r.GetForwardingPipelineConfigRequest(
                device_id=self.device_id,
                response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
            )
            try:
                answer = self.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
            except grpc.RpcError as error:
                failure = self.failure(error)
                if isinstance(failure, SwitchRefusedError) and failure.code == "FAILED_PRECONDITION":
                    raise NotOfferedError(f"{self.name}: {_NO_PIPELINE}") from error
                raise failure from error
            if not answer.config.p4info.ByteSize():
                raise NotOfferedError(f"{self.name}: {_NO_PIPELINE}")
            self._p4info = answer.config.p4info
        return self._p4info

    def cookie(self) -> int | None:
        """What identifies the program that the switch runs; None where there is none. Raises InspectError."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        try:
            config = self.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S).config
        except grpc.RpcError as error:
            failure = self.failure(error)
            if isinstance(failure, SwitchRefusedError) and failure.code == "FAILED_PRECONDITION":
                return None  # how BMv2 says that it runs none
            raise failure from error
        return config.cookie.cookie if config.HasField("cookie") else None

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """Everything that the patterns match, in the order of the switch."""
        request = p4r.ReadRequest(device_id=self.device_id, entities=entities)
        try:
            return [
                found for answer in self.stub.Read(request, timeout=TIMEOUT_S) for found in answer.entities
            ]
        except grpc.RpcError as error:
            raise self.failure(error) from error

    def statistics(self) -> dict[str, Any] | None:
        """What the traffic manager has counted, as the native switch says it (native.server.statistics)."""
        call = self._channel.unary_unary(_STATISTICS, bytes, bytes)
        try:
            found: dict[str, Any] = json.loads(call(str(self.device_id).encode(), timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            failure = self.failure(error)
            if isinstance(failure, SwitchRefusedError) and failure.code == "UNIMPLEMENTED":
                return None  # another switch than ours
            raise failure from error
        return found

    def failure(self, error: Any) -> InspectError:
        """The error of a call in one line, with the switch's name.

        Args:
            error: what a call raised: an RpcError that is a Call too, a class that gRPC's stubs do not know.
        """
        code, details = error.code(), " ".join((error.details() or "").split())
        if code is grpc.StatusCode.UNAVAILABLE:
            return SwitchUnreachableError(f"{self.name}: no P4Runtime server answers at {self.address}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return SwitchUnreachableError(f"{self.name}: no answer at {self.address} in {TIMEOUT_S:g} s")
        nested = _first_error(error)
        if nested is not None:
            code_name = next(c.name for c in grpc.StatusCode if c.value[0] == nested.canonical_code)
            return SwitchRefusedError(f"{self.name}: {nested.message or details} ({code_name})", code_name)
        return SwitchRefusedError(f"{self.name}: {details or 'refused'} ({code.name})", code.name)


def _first_error(error: Any) -> p4r.Error | None:
    """The first failed item of a batch, which P4Runtime §10 puts into the trailing metadata."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for packed in rpc_status.Status.FromString(value).details:
                found = p4r.Error()
                if packed.Unpack(found) and found.canonical_code:
                    return found
    return None


def load_p4info(path: Path) -> p4i.P4Info:
    """P4Info from a file, as text (.txt, .txtpb) or binary. Raises SpecError that names it."""
    try:
        data = read_bytes(path, MOST_TEXT_BYTES)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from error
    info = p4i.P4Info()
    try:
        text_format.Parse(data, info)
    except (ValueError, RecursionError, text_format.ParseError) as text_error:
        try:
            info = p4i.P4Info.FromString(data)
        except DecodeError:
            reason = next(iter(str(text_error).splitlines()), "not text")
            raise SpecError(f"{path}: not P4Info: {reason}") from text_error
    if not info.ListFields():
        raise SpecError(f"{path}: not P4Info: it is empty")
    return info
