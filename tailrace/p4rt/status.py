# SPDX-License-Identifier: Apache-2.0
"""The one error type of P4Runtime servers, and how errors travel in gRPC trailers."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from finsy.proto import p4r, rpc_status
from google.protobuf.message import DecodeError

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
"""Characters of a message to a client."""


class P4RtError(Error):
    """A request that the server refuses: a canonical code and one line for the developer of the client.

    Whatever names or texts of others are in it, the message is one line of at most MAX_MESSAGE characters,
    without control characters: nothing is told to a client but through here.
    """

    def __init__(self, code: Code, message: str, status: bytes | None = None) -> None:
        """Args:
        status: of a batch, for the trailers: see `BatchStatus`.
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
    """An error that has been caught, without the frames through which it came.

    They hold the request that was refused. Where one of them holds the error, too, that is a reference cycle,
    and the request stays until somebody searches for cycles.
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
    """One more detail of a status, which is a message of many parts: they can come one after the other."""
    detail, status = p4r.Error(), rpc_status.Status()
    if error is not None:
        detail.canonical_code = error.code
        detail.message = error.message
    status.details.add().Pack(detail)
    return status.SerializeToString()


_GOOD = _detail(None)


class BatchStatus:
    """The status of a batch as its elements are done: UNKNOWN with one p4.v1.Error for each, in order.

    Errors are kept as what is told of them, and no longer than that can be told.

    Source: P4Runtime specification 1.5, 10 and 12.3.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        """Takes the size of the status beyond which its details are left out; None: they never are."""
        self._most = most_bytes
        self._details: bytearray | None = bytearray()
        self._good = 0  # since the last failure
        self._count = 0
        self._last: tuple[P4RtError | None, bytes] = None, _GOOD
        self.failures = 0
        self.first: tuple[int, P4RtError] | None = None
        """Number, from 1 on, and error of the first failure."""

    def __len__(self) -> int:
        return self._count

    def append(self, error: P4RtError | None, /) -> None:
        """Notes what became of the next element; None is success."""
        self._count += 1
        if error is None:
            self._good += 1
            return
        self.failures += 1
        if self.first is None:
            self.first = self._count, error
        if self._details is None:
            return
        if error is not self._last[0]:
            self._last = error, _detail(error)
        size = len(self._details) + len(_GOOD) * self._good + len(self._last[1])
        if self._most is not None and size > self._most:
            self._details = None
            return
        self._details += _GOOD * self._good + self._last[1]
        self._good = 0

    def extend(self, errors: Iterable[P4RtError | None], /) -> None:
        """Notes what became of the next elements."""
        for error in errors:
            self.append(error)

    def error(self, what: str) -> P4RtError:
        """The error of a batch in which something failed."""
        status = self.packed(what)
        if status is None:
            # what each became is more than a client may take: say how many failed, and the first of them
            assert self.first is not None
            number, first = self.first
            what += f": {self.failures} of {len(self)}; the first, number {number}: "
            what += f"{first.code.name}: {first.message}"
        return P4RtError(Code.UNKNOWN, what, status)

    def packed(self, message: str) -> bytes | None:
        """The status in octets; None where the details of all elements are more than it may have."""
        if self._details is None:
            return None
        head = rpc_status.Status(code=Code.UNKNOWN, message=message).SerializeToString()
        size = len(head) + len(self._details) + len(_GOOD) * self._good
        if self._most is not None and size > self._most:
            return None
        return head + self._details + _GOOD * self._good


def refusals(trailers: Iterable[tuple[str, str | bytes]]) -> dict[int, P4RtError]:
    """What failed, by index, as `BatchStatus` puts it into the trailers of an answer; empty without one."""
    errors: dict[int, P4RtError] = {}
    for packed in (value for key, value in trailers if key == DETAILS and isinstance(value, bytes)):
        try:
            for index, element in enumerate(rpc_status.Status.FromString(packed).details):
                detail = p4r.Error()
                if element.Unpack(detail) and detail.canonical_code:
                    errors[index] = P4RtError(_code(detail.canonical_code), detail.message)
        except DecodeError:
            continue  # the status itself is told all the same
    return errors


def _code(number: int) -> Code:
    return Code(number) if number in Code._value2member_map_ else Code.UNKNOWN
