# SPDX-License-Identifier: Apache-2.0
"""ICMP echo requests and replies (RFC 792) in Ethernet and IPv4 without options."""

from __future__ import annotations

from tailrace.codec.checksum import ipv4_checksum
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import TTL

_LAYOUT = HeaderLayout("Ether", "IP")
_IP, _ICMP = _LAYOUT.start("IP"), _LAYOUT.size_bytes
_ETHERTYPE = slice(_IP - 2, _IP + 1)
"""EtherType, version and IHL."""

_IPV4 = b"\x08\x00\x45"
_PROTOCOL = _LAYOUT.span("IP.proto").byte
_TTL = _LAYOUT.span("IP.ttl").byte
_HEADER_CHECKSUM = _LAYOUT.span("IP.chksum").byte
_SOURCE, _TARGET = _LAYOUT.span("IP.src").byte, _LAYOUT.span("IP.dst").byte
_CHECKSUM = _ICMP + 2
_NUMBER, _SEQUENCE = _ICMP + 4, _ICMP + 6
_DATA = _ICMP + 8
_REPLY, _REQUEST, _ICMP_PROTOCOL = 0, 8, 1


class EchoFrame:
    """A frame with an echo request or reply."""

    def __init__(self, frame: bytes) -> None:
        """Args: frame: as `parse` accepts it."""
        self.frame = frame

    @staticmethod
    def parse(frame: bytes) -> EchoFrame | None:
        """The echo request or reply in a frame; None: it has none."""
        if frame[_ETHERTYPE] != _IPV4 or len(frame) < _DATA or frame[_PROTOCOL] != _ICMP_PROTOCOL:
            return None
        return EchoFrame(frame) if frame[_ICMP] in (_REPLY, _REQUEST) and frame[_ICMP + 1] == 0 else None

    @staticmethod
    def request(src_mac: str, dst_mac: str, src: str, dst: str, number: int, size_bytes: int) -> EchoFrame:
        """An echo request with sequence number 0. Addresses are in colon and in dotted form."""
        # imported late: most runs send no such packets, and importing Scapy takes longer than a small run
        from scapy.layers.inet import ICMP, IP
        from scapy.layers.l2 import Ether
        from scapy.packet import Raw

        packet = Ether(src=src_mac, dst=dst_mac) / IP(src=src, dst=dst, ttl=TTL) / ICMP(id=number)
        return EchoFrame(bytes(packet / Raw(bytes(size_bytes))))

    @property
    def is_request(self) -> bool:
        return self.frame[_ICMP] == _REQUEST

    @property
    def target(self) -> bytes:
        """The destination's IPv4 address."""
        return self.frame[_TARGET : _TARGET + 4]

    @property
    def key(self) -> tuple[bytes, int, int]:
        """The IPv4 address of the host that replies, identifier and sequence number."""
        peer = self.target if self.is_request else self.frame[_SOURCE : _SOURCE + 4]
        numbers = self.frame[_NUMBER:_DATA]
        return peer, int.from_bytes(numbers[:2], "big"), int.from_bytes(numbers[2:], "big")

    def with_sequence(self, sequence: int) -> bytes:
        """The frame with another sequence number."""
        frame = bytearray(self.frame)
        frame[_SEQUENCE:_DATA] = sequence.to_bytes(2, "big")
        _put_checksum(frame, _CHECKSUM, slice(_ICMP, None))
        return bytes(frame)

    def reply(self) -> bytes:
        """The reply to this request, with a full TTL."""
        frame = bytearray(self.frame)
        frame[0:12] = frame[6:12] + frame[0:6]  # swaps the MAC addresses
        frame[_SOURCE:_ICMP] = self.target + frame[_SOURCE:_TARGET]
        frame[_TTL], frame[_ICMP] = TTL, _REPLY
        _put_checksum(frame, _HEADER_CHECKSUM, slice(_IP, _ICMP))
        _put_checksum(frame, _CHECKSUM, slice(_ICMP, None))
        return bytes(frame)


def _put_checksum(frame: bytearray, offset: int, covered: slice) -> None:
    """Computes the Internet checksum (RFC 1071) over a part of the frame, and writes it there."""
    frame[offset : offset + 2] = bytes(2)
    data = frame[covered]
    frame[offset : offset + 2] = ipv4_checksum(data + bytes(len(data) % 2)).to_bytes(2, "big")
