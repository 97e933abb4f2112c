# SPDX-License-Identifier: Apache-2.0
"""The hash of a flow, as the common ECMP block defines it: CRC-32 of the packed 5-tuple, then two rounds of mixing."""

from __future__ import annotations

import functools
import struct
import zlib
from ipaddress import IPv4Address

from tests.flowcut.frames import Key

_MASK = 0xFFFFFFFF


@functools.lru_cache(maxsize=4096)
def flow_hash(key: Key, seed: int) -> int:
    """32 bits; `seed` is the switch's."""
    src, dst, sport, dport, protocol = key
    packed = struct.pack(">4s4sHHB", IPv4Address(src).packed, IPv4Address(dst).packed, sport, dport, protocol)
    mixed = (zlib.crc32(packed) ^ seed ^ 0x5851F42D) * 0x9E3779B1 & _MASK
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & _MASK
    return mixed ^ mixed >> 13
