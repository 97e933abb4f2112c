# SPDX-License-Identifier: Apache-2.0
"""Admits and parses requests: sizes are bounded, and large requests are few at a time and parsed in steps.

A message can be cut between any two fields and its parts merged (protobuf encoding guide, "Last One Wins"),
so a large one is parsed field by field.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TypeVar

from finsy.proto import p4r
from google.protobuf.message import DecodeError, Message

from tailrace.p4rt.status import P4RtError, exhausted, invalid

MAX_PART = 1 << 20
"""Octets of one field of a request, such as an update of a large group."""
MAX_ELEMENTS = 1 << 18
"""Updates or entities of one request: parsed, each takes far more memory than its octets. Larger tables are
written by several Writes.
"""
MAX_SMALL = 1 << 18
"""Octets of a stream message, or of a small request."""
MAX_P4INFO = 2 << 20
"""Octets of a SetForwardingPipelineConfigRequest without the program."""
MAX_PROGRAM = 32 << 20
"""Octets of p4_device_config."""

MAX_FIRST = 1 << 14
"""Octets of a stream's first message, an arbitration update."""
LARGE = 1 << 14
"""Octets of a large request; parsed, it may take a hundred times as much."""
MAX_LARGE = 4
"""Large requests that are parsed and executed at a time."""

_AT_ONCE = 1 << 16
_FIELDS_AT_ONCE = 1 << 11
"""Octets and fields of a large request that are parsed in one step."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_CONFIG, _DEVICE_CONFIG = (
    p4r.SetForwardingPipelineConfigRequest.CONFIG_FIELD_NUMBER,
    p4r.ForwardingPipelineConfig.P4_DEVICE_CONFIG_FIELD_NUMBER,
)

_M = TypeVar("_M", bound=Message)
_Batch = TypeVar("_Batch", p4r.WriteRequest, p4r.ReadRequest)


class Admission:
    """Large requests of unary calls: few are admitted at a time, and others wait as octets."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_LARGE)

    @contextlib.asynccontextmanager
    async def admit(self, octets: bytes) -> AsyncIterator[Callable[[], None]]:
        """Waits for a place and keeps it within, or until the function is called."""
        if len(octets) <= LARGE:
            yield lambda: None
            return
        await self._places.acquire()
        leaving = contextlib.ExitStack()
        leaving.callback(self._places.release)
        with leaving:
            yield leaving.close


def parsed(kind: type[_M], octets: bytes, most: int = MAX_SMALL) -> _M:
    """Parses a small message.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED; INVALID_ARGUMENT: it is not such a message.
    """
    if len(octets) > most:
        raise exhausted(f"{_name(kind)} has {len(octets)} bytes; the limit is {most}")
    return _decoded(kind, kind(), octets)


def parsed_config(octets: bytes) -> p4r.SetForwardingPipelineConfigRequest:
    """A SetForwardingPipelineConfigRequest.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED; INVALID_ARGUMENT: it is not such a message.
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


def parsing(kind: type[_Batch], octets: bytes) -> Generator[None, None, _Batch]:
    """Parses a request of many elements in steps.

    Raises:
        P4RtError: RESOURCE_EXHAUSTED; INVALID_ARGUMENT: it is not such a message.
    """
    message = kind()
    begin = end = 0
    if len(octets) > _AT_ONCE:
        for fields, (_, start, end) in enumerate(_fields(kind, octets, 0, len(octets)), 1):
            if end - start > MAX_PART:
                raise exhausted(f"{_name(kind)}: a part has {end - start} bytes; the limit is {MAX_PART}")
            if end - begin > _AT_ONCE or fields % _FIELDS_AT_ONCE == 0:
                _decoded(kind, message, octets[begin:end])
                begin = end
                _check_elements(message)
                yield
    _decoded(kind, message, octets[begin:])
    _check_elements(message)
    return message


async def parsed_batch(kind: type[_Batch], pause: Callable[[], Awaitable[None]], octets: bytes) -> _Batch:
    """A request of many elements, parsed with pauses.

    Raises:
        P4RtError: as `parsing`.
    """
    steps = parsing(kind, octets)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            message: _Batch = end.value
            return message
        await pause()


def _check_elements(message: p4r.WriteRequest | p4r.ReadRequest) -> None:
    kind, count = (
        ("updates", len(message.updates))
        if isinstance(message, p4r.WriteRequest)
        else ("entities", len(message.entities))
    )
    if count > MAX_ELEMENTS:
        raise exhausted(
            f"{_name(type(message))}: it has {count} {kind} and more; the limit is {MAX_ELEMENTS}"
        )


def _decoded(kind: type[_M], message: _M, octets: bytes) -> _M:
    try:
        message.MergeFromString(octets)
    except (DecodeError, ValueError) as error:
        raise _bad(kind) from error
    return message


def _fields(kind: type[Message], octets: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of every field's value between two offsets."""
    while at < end:
        tag, at = _varint(kind, octets, at, end)
        wire, begin = tag & 7, at
        if wire == _VARINT:
            _, at = _varint(kind, octets, at, end)
        elif wire == _BYTES:
            size, begin = _varint(kind, octets, at, end)
            at = begin + size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise _bad(kind)
        if at > end:
            raise _bad(kind)
        yield tag >> 3, begin, at


def _varint(kind: type[Message], octets: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        octet = octets[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
    raise _bad(kind)


def _name(kind: type[Message]) -> str:
    return kind.DESCRIPTOR.full_name


def _bad(kind: type[Message]) -> P4RtError:
    return invalid(f"the octets are no {_name(kind)}")
