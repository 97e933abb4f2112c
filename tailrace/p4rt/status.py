# SPDX-License-Identifier: Apache-2.0
"""The error type of P4Runtime servers, and its encoding in gRPC trailers."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

import msgspec
from google.protobuf.message import DecodeError

from tailrace.p4rt.messages import p4r, rpc_status
from tailrace.spec.errors import Error
from tailrace.spec.text import one_line


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
"""Maximum number of characters of a message to a client."""


class P4RtError(Error):
    """A rejected request: a canonical code and one line for the developer of the client.

    The message may contain untrusted text: it is one line of at most MAX_MESSAGE characters without control
    characters.

    results: for a batch the error of each part, or None; else empty
    """

    results: Sequence[P4RtError | None] = ()

    def __init__(self, code: Code, message: str, status: bytes | None = None) -> None:
        """Args:
        status: the serialized status of a batch, for the trailers: see `BatchStatus`.
        """
        self.code = code
        self.message = one_line(message, MAX_MESSAGE)
        self.status = status
        super().__init__(self.message)


def invalid(message: str) -> P4RtError:
    return P4RtError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> P4RtError:
    return P4RtError(Code.NOT_FOUND, message)


def exhausted(message: str) -> P4RtError:
    return P4RtError(Code.RESOURCE_EXHAUSTED, message)


_E = TypeVar("_E", bound=BaseException)


def without_frames(error: _E) -> _E:
    """A caught error, without the frames of its traceback.

    The frames refer to the request. If a frame also refers to the error, there is a reference cycle, and the
    request stays in memory until the next garbage collection.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause.__traceback__, cause = None, cause.__context__
    error.__context__ = error.__cause__ = None
    return error


DETAILS = "grpc-status-details-bin"
"""The key of a batch's status in the trailers."""


def _detail(error: P4RtError | None) -> bytes:
    """One detail of a serialized status; serialized messages are merged by concatenation."""
    detail, status = p4r.Error(), rpc_status.Status()
    if error is not None:
        detail.canonical_code = error.code
        detail.message = error.message
    status.details.add().Pack(detail)
    return status.SerializeToString()


_SUCCESS = _detail(None)


class BatchStatus(msgspec.Struct):
    """The status of a batch: UNKNOWN with one p4.v1.Error for each element, in order.

    Errors are stored serialized, up to the size limit.

    most_bytes: size limit of the status, above which it has no details; None: no limit
    failures: number of failures
    first: position, from 1, and error of the first failure

    Source: P4Runtime specification 1.5, 10 and 12.3.
    """

    most_bytes: int | None = None
    failures: int = 0
    first: tuple[int, P4RtError] | None = None
    _details: bytearray | None = msgspec.field(default_factory=bytearray)
    _successes: int = 0  # successes since the last failure
    _count: int = 0
    _last: tuple[P4RtError | None, bytes] = (None, _SUCCESS)  # the last error, and its detail for reuse

    def __len__(self) -> int:
        return self._count

    def append(self, error: P4RtError | None, /) -> None:
        """Adds the result of the next element; None is success."""
        self._count += 1
        if error is None:
            self._successes += 1
            return
        self.failures += 1
        if self.first is None:
            self.first = self._count, error
        if self._details is None:
            return
        if error is not self._last[0]:
            self._last = error, _detail(error)
        size = len(self._details) + len(_SUCCESS) * self._successes + len(self._last[1])
        if self.most_bytes is not None and size > self.most_bytes:
            self._details = None
            return
        self._details += _SUCCESS * self._successes + self._last[1]
        self._successes = 0

    def extend(self, errors: Iterable[P4RtError | None], /) -> None:
        """Adds the results of the next elements."""
        for error in errors:
            self.append(error)

    def error(self, what: str, count: int) -> P4RtError:
        """The error of a batch of `count` elements with failures; elements not added count as successes."""
        self._successes += count - self._count
        self._count = count
        status = self.packed(what)
        if status is None:
            # the details are too large: the message contains the number of failures, and the first failure
            assert self.first is not None
            number, first = self.first
            what += f": {self.failures} of {len(self)}; the first, number {number}: "
            what += f"{first.code.name}: {first.message}"
        return P4RtError(Code.UNKNOWN, what, status)

    def packed(self, message: str) -> bytes | None:
        """The serialized status; None: the details are too large."""
        if self._details is None:
            return None
        head = rpc_status.Status(code=Code.UNKNOWN, message=message).SerializeToString()
        size = len(head) + len(self._details) + len(_SUCCESS) * self._successes
        if self.most_bytes is not None and size > self.most_bytes:
            return None
        return head + self._details + _SUCCESS * self._successes


def refusals(trailers: Iterable[tuple[str, str | bytes]]) -> dict[int, P4RtError]:
    """The errors of a batch by index, from the trailers of a response (`BatchStatus`)."""
    errors: dict[int, P4RtError] = {}
    for packed in (value for key, value in trailers if key == DETAILS and isinstance(value, bytes)):
        try:
            for index, element in enumerate(rpc_status.Status.FromString(packed).details):
                detail = p4r.Error()
                if element.Unpack(detail) and detail.canonical_code:
                    errors[index] = P4RtError(_code(detail.canonical_code), detail.message)
        except DecodeError:
            continue  # the caller reports the status of the call in any case
    return errors


def _code(number: int) -> Code:
    return Code(number) if number in Code._value2member_map_ else Code.UNKNOWN
