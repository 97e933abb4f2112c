# SPDX-License-Identifier: Apache-2.0
"""The packets of a capture, of pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng).

    pcap     magic, 20 octets, then records:  8 octets of time   length here   length on the wire   packet
    pcapng   blocks:  type   length of the block   body, a multiple of 4 octets   length again
             bodies that hold packets:
             6 enhanced   interface, 8 octets of time         length here   length on the wire   packet   ...
             2 obsolete   interface, drops, 8 octets of time  length here   length on the wire   packet   ...
             3 simple     length on the wire   packet

Numbers have 4 octets, in the order that the magic tells. Of each length it is looked first whether so much is
left: what is cut off or damaged is no capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tailrace.words import SpecError

_Order = Literal["little", "big"]

_PCAP: dict[str, _Order] = {
    "a1b2c3d4": "big",
    "a1b23c4d": "big",
    "d4c3b2a1": "little",
    "4d3cb2a1": "little",
}
_PCAPNG = "0a0d0d0a"
_ORDERS: dict[str, _Order] = {"1a2b3c4d": "big", "4d3c2b1a": "little"}
"""By the first octets of a file, or of a section of pcapng."""

_SECTION, _INTERFACE, _SIMPLE = 0x0A0D0D0A, 1, 3
_WITH_TIMES = (2, 6)


class CaptureError(SpecError):
    """What is no whole capture; the text says what is wrong."""


class _Octets:
    """Gives what comes next; CaptureError where there is not so much left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.order: _Order = "little"

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise CaptureError("it is cut off, or says of something that it is longer than what is left")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(4), self.order)

    def begin_section(self) -> None:
        """Takes the order of numbers from the magic behind the length of a section, which comes next."""
        magic = self._data[self._at + 4 : self._at + 8].hex()
        if magic not in _ORDERS:
            raise CaptureError("a section without its magic")
        self.order = _ORDERS[magic]


def packets_of(content: bytes) -> Iterator[bytes]:
    """The packets in a file, in its order.

    Raises:
        CaptureError: it is no capture, or not a whole one.
    """
    octets = _Octets(content)
    if content[:4].hex() == _PCAPNG:
        return _pcapng(octets)
    if content[:4].hex() not in _PCAP:
        raise CaptureError("neither pcap nor pcapng")
    octets.order = _PCAP[content[:4].hex()]
    return _pcap(octets)


def _pcap(octets: _Octets) -> Iterator[bytes]:
    octets.take(24)
    while octets:
        octets.take(8)
        length = octets.number()
        octets.take(4)
        yield octets.take(length)


def _pcapng(octets: _Octets) -> Iterator[bytes]:
    most = None
    while octets:
        kind = octets.number()
        if kind == _SECTION:
            octets.begin_section()
            most = None
        length = octets.number()
        if length < 12 or length % 4:
            raise CaptureError(f"a block of {length} octets")
        body = _Octets(octets.take(length - 12))
        body.order = octets.order
        if octets.number() != length:
            raise CaptureError("the ends of a block do not agree on its length")
        if kind == _INTERFACE and most is None:
            body.take(4)
            most = body.number()
        elif kind in _WITH_TIMES:
            body.take(12)
            captured = body.number()
            body.take(4)
            yield body.take(captured)
        elif kind == _SIMPLE:
            length = body.number()
            yield body.take(min(length, most) if most else length)
