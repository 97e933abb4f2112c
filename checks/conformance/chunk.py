# SPDX-License-Identifier: Apache-2.0
"""A header of a generated packet, with valid IPv4 and UDP lengths and checksums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

IPV4_FIELDS = {"version", "ihl", "total_len", "protocol", "checksum", "src", "dst"}
UDP_FIELDS = {"src_port", "dst_port", "length", "checksum"}


@dataclass(slots=True)
class Chunk:
    """A header, or skipped bytes: fields in order with their widths in bits, and their values."""

    header_type: str
    widths: list[tuple[str, int]]
    values: dict[str, int]

    @property
    def bits(self) -> int:
        """Width of the whole header."""
        return sum(width for _, width in self.widths)

    def encode(self) -> bytes:
        """The bytes of the header; its widths add up to whole bytes."""
        number = 0
        for name, width in self.widths:
            number = number << width | self.values[name] & (1 << width) - 1
        return number.to_bytes(self.bits // 8, "big")


def internet_checksum(data: bytes) -> int:
    """The Internet checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def repair(chunks: Sequence[Chunk], payload: bytes) -> None:
    """Sets, in place, the checksum of the first IPv4 header, and lengths and checksum of a UDP header before
    the payload. Does nothing without an IPv4 header.
    """
    ipv4 = next((chunk for chunk in chunks if chunk.values.keys() >= IPV4_FIELDS and chunk.bits == 160), None)
    if ipv4 is None:
        return
    if chunks[-1].values.keys() >= UDP_FIELDS and chunks[-1].bits == 64:
        udp = chunks[-1]
        udp.values["length"] = 8 + len(payload)
        udp.values["checksum"] = 0
        ipv4.values["total_len"] = 28 + len(payload)
        addresses = ipv4.values["src"].to_bytes(4, "big") + ipv4.values["dst"].to_bytes(4, "big")
        pseudo = addresses + bytes([0, ipv4.values["protocol"]]) + udp.values["length"].to_bytes(2, "big")
        udp.values["checksum"] = internet_checksum(pseudo + udp.encode() + payload)
    ipv4.values["checksum"] = 0
    ipv4.values["checksum"] = internet_checksum(ipv4.encode())
