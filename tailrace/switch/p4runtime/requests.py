# SPDX-License-Identifier: Apache-2.0
"""Admits and parses requests: their size is bounded, and only a few large ones are admitted at a time.

A large request is parsed in steps: a protobuf message can be cut between any two fields, and its parts merged
(protobuf encoding guide, "Last One Wins").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import P4RtError, exhausted, invalid

MAX_PART = 1 << 20
"""Most octets of one field of a request, such as an update of a large group."""
MAX_ELEMENTS = 1 << 18
"""Most updates or entities of one request: each takes far more memory parsed than serialized. Larger tables
need several Writes.
"""
MAX_SMALL = 1 << 18
"""Most octets of a stream message, or of a request other than Write, Read or SetForwardingPipelineConfig."""
MAX_P4INFO = 2 << 20
"""Most octets of a SetForwardingPipelineConfigRequest without the program."""
MAX_PROGRAM = 32 << 20
"""Most octets of p4_device_config."""

MAX_FIRST = 1 << 14
"""Most octets of a stream's first message, an arbitration update."""
LARGE_OCTETS = 1 << 14
"""A request of more octets than this is large; parsed, it may take a hundred times as much memory."""
MAX_LARGE = 4
"""Most large requests that are parsed and executed at a time."""

_STEP_OCTETS = 1 << 16
_STEP_FIELDS = 1 << 11
"""About how many octets, and at most how many fields, of a large request are parsed in one step."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_CONFIG, _DEVICE_CONFIG = (
    p4r.SetForwardingPipelineConfigRequest.CONFIG_FIELD_NUMBER,
    p4r.ForwardingPipelineConfig.P4_DEVICE_CONFIG_FIELD_NUMBER,
)

_M = TypeVar("_M", bound=Message)
_Batch = TypeVar("_Batch", p4r.WriteRequest, p4r.ReadRequest)


class Admission:
    """Admits MAX_LARGE large requests of unary calls at a time; others wait unparsed."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LARGE)

    @contextlib.asynccontextmanager
    async def admit(self, octets: bytes) -> AsyncIterator[Callable[[], None]]:
        """Waits for a slot and holds it within the context, or until the yielded function is called."""
        if len(octets) <= LARGE_OCTETS:
            yield lambda: None
            return
        await self._slots.acquire()
        leaving = contextlib.ExitStack()
        leaving.callback(self._slots.release)
        with leaving:
            yield leaving.close


def parsed(kind: type[_M], octets: bytes, limit: int = MAX_SMALL) -> _M:
    """Parses a message in one step.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED: it has more than `limit` octets; INVALID_ARGUMENT: it is not of `kind`.
    """
    if len(octets) > limit:
        raise exhausted(f"{_name(kind)} has {len(octets)} bytes; the limit is {limit}")
    return _decoded(kind, kind(), octets)


def parsed_config(octets: bytes) -> p4r.SetForwardingPipelineConfigRequest:
    """Parses a SetForwardingPipelineConfigRequest.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED: it is too large; INVALID_ARGUMENT: it is not such a message.
    """
    kind = p4r.SetForwardingPipelineConfigRequest
    program = 0
    for number, begin, end in _fields(kind, octets, 0, len(octets)):
        if number == _CONFIG:
            inner = _fields(kind, octets, begin, end)
            program += sum(stop - start for field, start, stop in inner if field == _DEVICE_CONFIG)
    if program > MAX_PROGRAM:
        raise exhausted(f"p4_device_config has {program} bytes; the limit is {MAX_PROGRAM}")
    if len(octets) - program > MAX_P4INFO:
        raise exhausted(f"p4info has {len(octets) - program} bytes; the limit is {MAX_P4INFO}")
    return _decoded(kind, kind(), octets)


async def parsed_batch(kind: type[_Batch], pause: Callable[[], Awaitable[None]], octets: bytes) -> _Batch:
    """Parses a Write or Read in steps; awaits `pause` after each.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED: it is too large; INVALID_ARGUMENT: it is not such a message.
    """
    message = kind()
    begin = end = 0
    if len(octets) > _STEP_OCTETS:
        for fields, (_, start, end) in enumerate(_fields(kind, octets, 0, len(octets)), 1):
            if end - start > MAX_PART:
                raise exhausted(f"{_name(kind)}: a field has {end - start} bytes; the limit is {MAX_PART}")
            if end - begin > _STEP_OCTETS or fields % _STEP_FIELDS == 0:
                _decoded(kind, message, octets[begin:end])
                begin = end
                _check_elements(message)
                await pause()
    _decoded(kind, message, octets[begin:])
    _check_elements(message)
    return message


def _check_elements(message: p4r.WriteRequest | p4r.ReadRequest) -> None:
    kind = "updates" if isinstance(message, p4r.WriteRequest) else "entities"
    count = len(getattr(message, kind))
    if count > MAX_ELEMENTS:
        raise exhausted(f"{_name(type(message))} has at least {count} {kind}; the limit is {MAX_ELEMENTS}")


def _decoded(kind: type[_M], message: _M, octets: bytes) -> _M:
    try:
        message.MergeFromString(octets)
    except (DecodeError, ValueError) as error:
        raise _bad(kind) from error
    return message


def _fields(kind: type[Message], octets: bytes, offset: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a message between two offsets: field number, and begin and end of the value."""
    while offset < end:
        tag, offset = _varint(kind, octets, offset, end)
        wire_type, begin = tag & 7, offset
        if wire_type == _VARINT:
            _, offset = _varint(kind, octets, offset, end)
        elif wire_type == _BYTES:
            size, begin = _varint(kind, octets, offset, end)
            offset = begin + size
        elif wire_type in (_FIXED64, _FIXED32):
            offset += 8 if wire_type == _FIXED64 else 4
        else:
            raise _bad(kind)
        if offset > end:
            raise _bad(kind)
        yield tag >> 3, begin, offset


def _varint(kind: type[Message], octets: bytes, offset: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while offset < end and shift < 70:
        octet = octets[offset]
        offset += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, offset
        shift += 7
    raise _bad(kind)


def _name(kind: type[Message]) -> str:
    return kind.DESCRIPTOR.full_name


def _bad(kind: type[Message]) -> P4RtError:
    return invalid(f"the request is not a {_name(kind)} message")
