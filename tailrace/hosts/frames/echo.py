# SPDX-License-Identifier: Apache-2.0
"""ICMP echo requests and replies (RFC 792) in Ethernet and IPv4 without options.

Scapy is imported where a frame is made, since importing it takes longer than a small run without pings.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.codec.numbers import TTL

_ICMP = 34
"""Octets of the headers before ICMP's."""

_TYPES = {bytes([0, 0]): False, bytes([8, 0]): True}
"""Whether an ICMP message is a request, by its type and code."""


class Echo(NamedTuple):
    """An echo request or reply, with the IPv4 addresses of sender and receiver, identifier and number."""

    is_request: bool
    src: str
    dst: str
    number: int
    sequence: int


def parse(frame: bytes) -> Echo | None:
    """The echo request or reply in a frame; None: it has none."""
    is_request = _TYPES.get(frame[_ICMP : _ICMP + 2])
    if is_request is None or frame[12:15] != b"\x08\x00\x45" or frame[23] != 1 or len(frame) < _ICMP + 8:
        return None  # not IPv4 without options, not ICMP, or cut off
    src, dst = (".".join(map(str, frame[at : at + 4])) for at in (26, 30))
    number, sequence = (int.from_bytes(frame[at : at + 2], "big") for at in (_ICMP + 4, _ICMP + 6))
    return Echo(is_request, src, dst, number, sequence)


def request(macs: tuple[str, str], echo: Echo, size_bytes: int) -> bytes:
    """The frame of a request, from the first to the second MAC address, with a payload of this size."""
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    icmp = ICMP(id=echo.number, seq=echo.sequence) / Raw(bytes(size_bytes))
    return bytes(Ether(src=macs[0], dst=macs[1]) / IP(src=echo.src, dst=echo.dst, ttl=TTL) / icmp)


def reply(frame: bytes) -> bytes:
    """The reply to a request, with a full TTL."""
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.l2 import Ether

    answer = Ether(frame)
    answer.src, answer.dst = answer.dst, answer.src
    packet = answer[IP]
    packet.src, packet.dst, packet.ttl, packet[ICMP].type = packet.dst, packet.src, TTL, 0
    del packet.chksum, packet[ICMP].chksum  # computed anew
    return bytes(answer)
