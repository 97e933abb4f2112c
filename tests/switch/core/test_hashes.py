# SPDX-License-Identifier: Apache-2.0
"""Hash algorithms against other implementations and published check values."""

from __future__ import annotations

import random
import zlib

import pytest
from cffi import FFI

from tailrace.cbuild.headers import bound
from tailrace.switch.core.lib import runtime_library

CHECK = b"123456789"


def digest(name: str, data: bytes) -> int:
    ffi = FFI()
    ffi.cdef(f"uint64_t tr_hash_{name}(const uint8_t *buf, size_t len);")
    return int(getattr(bound(runtime_library(), ffi), f"tr_hash_{name}")(data, len(data)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crc8_custom", 0xF4),  # CRC-8/SMBUS
        ("crc16", 0xBB3D),  # CRC-16/ARC
        ("crcCCITT", 0x29B1),  # CRC-16/CCITT-FALSE
        ("crc32", 0xCBF43926),
        ("crc64_custom", 0x46A5A9388A5BEFFE),  # CRC-64 of ISO 3309 with zero start
        ("identity", 0x3132333435363738),
        ("xxh64", 0x8CB841DB40E6AE83),
    ],
)
def test_check_values(name: str, expected: int) -> None:
    assert expected == digest(name, CHECK)


def test_empty_inputs() -> None:
    assert 0 == digest("identity", b"")
    assert 0xFFFF == digest("csum16", b"")
    assert 0xEF46DB3751D8E999 == digest("xxh64", b"")
    assert 0 == digest("xor16", b"")


def test_crc32_equals_zlib() -> None:
    rng = random.Random(1)
    for size in range(100):
        data = rng.randbytes(size)
        assert zlib.crc32(data) == digest("crc32", data)


def internet_checksum(data: bytes) -> int:
    """RFC 1071 as it is written."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def test_csum16_equals_the_rfc() -> None:
    rng = random.Random(2)
    for size in [*range(70), 255, 1500]:
        for data in (rng.randbytes(size), b"\xff" * size):
            assert internet_checksum(data) == digest("csum16", data)


@pytest.mark.parametrize(("name", "n"), [("xor16", 2), ("xor32", 4)])
def test_xor_of_words(name: str, n: int) -> None:
    rng = random.Random(3)
    for size in range(20):
        data = rng.randbytes(size)
        padded = data + b"\0" * (-size % n)
        expected = 0
        for i in range(0, len(padded), n):
            expected ^= int.from_bytes(padded[i : i + n], "big")
        assert expected == digest(name, data)
