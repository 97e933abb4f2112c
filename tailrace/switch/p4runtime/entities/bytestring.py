# SPDX-License-Identifier: Apache-2.0
"""P4Runtime bytestrings: big-endian integers, canonical in responses (specification 8.3)."""

from __future__ import annotations

from tailrace.p4rt.status import Code, P4RtError


def encode(value: int) -> bytes:
    """The shortest bytestring of an unsigned value; for 0 it is one zero byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def shortest(data: bytes) -> bytes:
    """The shortest bytestring of the same unsigned value."""
    return data.lstrip(b"\0") or b"\0"


def decode(data: bytes, bits: int, what: str) -> int:
    """The value of a `bit<bits>` bytestring of any length; `what` is its name in the error.

    Raises:
        P4RtError: OUT_OF_RANGE for an empty string or a value wider than `bits`.
    """
    if not data:
        raise P4RtError(Code.OUT_OF_RANGE, f"{what}: the bytestring is empty")
    value = int.from_bytes(data, "big")
    if value >> bits:
        raise P4RtError(Code.OUT_OF_RANGE, f"{what}: value does not fit in {bits} bits")
    return value


def encode_signed(value: int) -> bytes:
    """The shortest two's complement bytestring of a signed value."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decode_signed(data: bytes, bits: int, what: str) -> int:
    """The value of an `int<bits>` bytestring of any length.

    Raises:
        P4RtError: OUT_OF_RANGE for an empty string or a value outside of `int<bits>`.
    """
    if not data:
        raise P4RtError(Code.OUT_OF_RANGE, f"{what}: the bytestring is empty")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise P4RtError(Code.OUT_OF_RANGE, f"{what}: value does not fit in {bits} signed bits")
    return value
