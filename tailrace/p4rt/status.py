# SPDX-License-Identifier: Apache-2.0
"""The one error type of P4Runtime servers, and how errors travel in gRPC trailers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from finsy.proto import p4r, rpc_status
from google.protobuf.message import DecodeError

from tailrace.words.errors import Error
from tailrace.words.text import one_line


class Code(IntEnum):
    """Canonical error codes (google.rpc.Code)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


MAX_MESSAGE = 300
"""Characters of a message to a client."""


class P4RtError(Error):
    """A request that the server refuses: a canonical code and one line for the developer of the client.

    Whatever names or texts of others are in it, the message is one line of at most MAX_MESSAGE characters,
    without control characters: nothing is told to a client but through here.
    """

    def __init__(self, code: Code, message: str) -> None:
        self.code = code
        self.message = one_line(message, MAX_MESSAGE)
        super().__init__(self.message)


def invalid(message: str) -> P4RtError:
    return P4RtError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> P4RtError:
    return P4RtError(Code.NOT_FOUND, message)


def exhausted(message: str) -> P4RtError:
    return P4RtError(Code.RESOURCE_EXHAUSTED, message)


DETAILS = "grpc-status-details-bin"
"""The key of a batch's status in the trailers."""


def batch_status(message: str, errors: Sequence[P4RtError | None]) -> rpc_status.Status:
    """The status of a batch in which something failed: UNKNOWN with one p4.v1.Error for each element, in
    order.

    Source: P4Runtime specification 1.5, 10 and 12.3.
    """
    status = rpc_status.Status(code=Code.UNKNOWN, message=message)
    for error in errors:
        detail = p4r.Error()
        if error is not None:
            detail.canonical_code = error.code
            detail.message = error.message
        status.details.add().Pack(detail)
    return status


def refusals(trailers: Iterable[tuple[str, str | bytes]]) -> dict[int, P4RtError]:
    """What failed, by index, as `batch_status` put it into the trailers of an answer; empty without one."""
    found: dict[int, P4RtError] = {}
    for packed in (value for key, value in trailers if key == DETAILS and isinstance(value, bytes)):
        try:
            for index, element in enumerate(rpc_status.Status.FromString(packed).details):
                detail = p4r.Error()
                if element.Unpack(detail) and detail.canonical_code:
                    found[index] = P4RtError(_code(detail.canonical_code), detail.message)
        except DecodeError:
            continue  # the status itself is told all the same
    return found


def _code(number: int) -> Code:
    return Code(number) if number in Code._value2member_map_ else Code.UNKNOWN
