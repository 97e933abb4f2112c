# SPDX-License-Identifier: Apache-2.0
"""The IPv4 header checksum and the RoCEv2 invariant CRC (InfiniBand annex A17.3.3), fast."""

from __future__ import annotations

from zlib import crc32

from tailrace.codec.layout import HeaderLayout

ICRC_BYTES = 4

_STACK = HeaderLayout("IP", "UDP", "BTH")
# State after the ICRC's dummy local route header, which is all ones.
ICRC_START = crc32(b"\xff" * 8)
# Bytes that are ones in the ICRC, as their fields may change on the path: TOS, TTL, both checksums, and the
# byte of the BTH that contains FECN, BECN and resv6 (here a tag of the packet's path, layers/bth.py).
_MASKED = tuple(
    offset
    for span in (
        _STACK.span("IP.tos"),
        _STACK.span("IP.ttl"),
        _STACK.span("IP.chksum"),
        _STACK.span("UDP.chksum"),
        _STACK.span("BTH.fecn", "BTH.resv6"),
    )
    for offset in range(span.byte, span.end)
)


def ipv4_checksum(header: bytes | bytearray) -> int:
    """The checksum of a header, whose checksum field must be 0; its length is a multiple of 2 bytes."""
    # the one's complement sum of 16-bit words is the header's number modulo 0xffff; if this remainder is 0,
    # the sum is 0xffff, as a header is not all zeros
    return 0xFFFF - (int.from_bytes(header, "big") % 0xFFFF or 0xFFFF)


def icrc_of_headers(headers: bytes | bytearray) -> int:
    """The CRC state after IPv4, UDP and at least the first 8 bytes of the BTH, with variant fields masked."""
    masked = bytearray(headers)
    for offset in _MASKED:
        masked[offset] = 0xFF
    return crc32(masked, ICRC_START)
