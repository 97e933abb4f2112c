# SPDX-License-Identifier: Apache-2.0
"""The Ethernet frames of a capture in pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng).

    pcap     magic   version, 2 x 2   12 octets   link type, then records:
             8 octets of time   captured length   length on the wire   frame
    pcapng   blocks:  type   length of the block   body, a multiple of 4 octets   length again
             section 0x0a0d0d0a  magic   version, 2 x 2   8 octets
             interface 1         link type, 2   2 octets   snap length   options
             enhanced 6          interface   8 octets of time   captured length   wire length   frame, options
             obsolete 2          interface, 2   drops, 2   then as enhanced
             simple 3            length on the wire   frame, of interface 0
             options: code, 2    length, 2   value, a multiple of 4 octets

Numbers have 4 octets if no other length is given, in the byte order of the magic. The metadata of frames is
used (byte order, times, lengths, presence of the FCS, which is removed) or makes the capture invalid (link
types other than Ethernet, truncated frames, frames with errors). Each length is checked against the octets
that remain.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from tailrace.spec import SpecError
from tailrace.spec.constants import MAX_FRAME_BYTES, NS_PER_S

_PCAP = {"a1b2c3d4": (">", 1000), "a1b23c4d": (">", 1), "d4c3b2a1": ("<", 1000), "4d3cb2a1": ("<", 1)}
"""Byte order and unit of times in ns of a pcap file, by magic."""

_SECTIONS = {"1a2b3c4d": ">", "4d3c2b1a": "<"}
"""Byte orders of a section of pcapng, by magic."""

_SECTION, _INTERFACE, _OBSOLETE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_IF_TSRESOL, _IF_FCSLEN, _EPB_FLAGS = 9, 13, 2
_MICROSECONDS = 6
"""pcapng's default of if_tsresol: times in units of 10^-6 s."""

_ETHERNET = 1
_LINK_TYPES = {
    0: "NULL, a loopback interface",
    101: "RAW, IP without a link layer",
    105: "IEEE802_11, wireless",
    113: 'LINUX_SLL, as of "tcpdump -i any"',
    127: "IEEE802_11_RADIOTAP, wireless",
    228: "IPV4, without a link layer",
    229: "IPV6, without a link layer",
    276: 'LINUX_SLL2, as of "tcpdump -i any"',
}
"""Names of frequent link types, by their numbers at tcpdump.org/linktypes.html."""

_FCS_PRESENT = 1 << 26
_FCS_OCTETS = {0: 0, 4: 4, 32: 4}
"""Octets of Ethernet's FCS by the length in a file: pcapng's draft says bits, its example has octets."""


class CaptureError(SpecError):
    """The file is no complete capture of Ethernet frames; the text says what is wrong."""


class _Octets:
    """Reads octets one after the other; raises CaptureError if too few remain."""

    def __init__(self, data: bytes, order: str = "<") -> None:
        self._data, self.order = data, order
        self._offset = 0

    def __bool__(self) -> bool:
        return self._offset < len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._offset:
            raise CaptureError("it is cut off, or a length in it exceeds the octets that remain")
        self._offset += count
        return self._data[self._offset - count : self._offset]

    def numbers(self, layout: str) -> tuple[int, ...]:
        """The next numbers, in a format of `struct`."""
        return struct.unpack(self.order + layout, self.take(struct.calcsize("=" + layout)))

    def number(self) -> int:
        return self.numbers("I")[0]

    def begin_section(self) -> None:
        """Sets the byte order from the magic of a section, which follows its length."""
        magic = self._data[self._offset + 4 : self._offset + 8].hex()
        if magic not in _SECTIONS:
            raise CaptureError("a section without its magic")
        self.order = _SECTIONS[magic]

    def options(self) -> dict[int, bytes]:
        """The options up to the end of a block."""
        options = {}
        while self:
            code, length = self.numbers("HH")
            if code == 0:
                break
            options[code] = self.take(length)
            self.take(-length % 4)
        return options


class CapturedFrame(NamedTuple):
    """A frame without its FCS, and when it was captured, in ns since the epoch; None: not known."""

    time_ns: int | None
    data: bytes


@dataclass(frozen=True, slots=True)
class _Interface:
    """What a capture states for all frames of an interface.

    resolution: if_tsresol: the unit of times is 10^-N s, or from 128 on 2^-(N - 128) s
    fcs: length of the FCS as the file gives it; 0: frames have none
    snap_octets: the snap length, to which simple blocks cut frames; 0: frames are whole
    """

    link_type: int
    fcs: int
    snap_octets: int = 0
    resolution: int = _MICROSECONDS

    def time_ns(self, high: int, low: int) -> int:
        """A time in ns, from the upper and lower half of its number."""
        units = high << 32 | low
        if self.resolution & 128:
            return units * NS_PER_S >> (self.resolution & 127)
        return int(units * NS_PER_S // 10**self.resolution)


class _Frames:
    """Checks the frames of a capture, and counts them."""

    def __init__(self) -> None:
        self._count = 0

    def frame(self, interface: _Interface, data: bytes, length: int, flags: int = 0) -> bytes:
        """The frame without its FCS.

        Args:
            length: length of the frame on the wire.
            flags: epb_flags of an enhanced block.

        Raises:
            CaptureError: it is no complete Ethernet frame.
        """
        self._count += 1
        if interface.link_type != _ETHERNET:
            name = _LINK_TYPES.get(interface.link_type)
            raise self.error(
                f"link type {interface.link_type}{f' ({name})' if name else ''}; expected 1, Ethernet"
            )
        if len(data) != length:
            raise self.error(f"{len(data)} of its {length} octets were captured; use tcpdump -s 0")
        if flags >> 16:
            raise self.error(f"it was received with link errors (flags 0x{flags:08x})")
        fcs = flags >> 5 & 0xF or interface.fcs
        if fcs not in _FCS_OCTETS:
            raise self.error(f"a frame check sequence of {fcs} octets; Ethernet has 4")
        if _FCS_OCTETS[fcs] > length:
            raise self.error(f"{length} octets are too short for a frame with an FCS")
        return data[: length - _FCS_OCTETS[fcs]]

    def error(self, problem: str) -> CaptureError:
        return CaptureError(f"packet {self._count}: {problem}")


def packets_of(content: bytes) -> Iterator[bytes]:
    """The frames of a file, in order, without FCS.

    Raises:
        CaptureError: as `frames_of`.
    """
    return (frame.data for frame in frames_of(content))


class TimedFrame(Protocol):
    """A frame and its time in ns."""

    @property
    def time_ns(self) -> int: ...

    @property
    def data(self) -> bytes: ...


def write_pcap(path: Path, frames: Iterable[TimedFrame]) -> None:
    """Writes frames to a pcap file with times in ns."""
    with path.open("wb") as file:
        write_frames(file, ((frame.time_ns, frame.data, len(frame.data)) for frame in frames))


def write_frames(file: BinaryIO, frames: Iterable[tuple[int, bytes, int]]) -> None:
    """Writes pcap as frames come: for each the time in ns, the octets, and the length on the link."""
    file.write(PCAP_HEADER)
    file.flush()
    for time_ns, data, length in frames:
        file.write(pcap_packet(time_ns, data, length))
        file.flush()


PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, MAX_FRAME_BYTES, _ETHERNET)
"""The begin of a pcap file of Ethernet frames with times in ns."""


def pcap_packet(time_ns: int, data: bytes, length: int) -> bytes:
    """A frame in such a file; `length`: its length on the link."""
    return struct.pack("<IIII", *divmod(time_ns, NS_PER_S), len(data), length) + data


def frames_of(content: bytes) -> Iterator[CapturedFrame]:
    """The frames of a file with their times, in order.

    Raises:
        CaptureError: it is no capture, not complete, or not of Ethernet.
    """
    magic = content[:4].hex()
    if magic == f"{_SECTION:08x}":
        return _pcapng(_Octets(content))
    if magic not in _PCAP:
        raise CaptureError("neither pcap nor pcapng")
    order, unit_ns = _PCAP[magic]
    return _pcap(_Octets(content, order), unit_ns)


def _pcap(octets: _Octets, unit_ns: int) -> Iterator[CapturedFrame]:
    _, major, minor, _, _, _, link = octets.numbers("IHHIIII")
    if (major, minor) != (2, 4):
        raise CaptureError(f"pcap of version {major}.{minor}; expected 2.4")
    # upper half of the link type: whether frames have an FCS, and its length in units of 2 octets
    interface = _Interface(link & 0xFFFF, (link >> 28) * 2 if link & _FCS_PRESENT else 0)
    frames = _Frames()
    while octets:
        seconds, fraction, captured, length = octets.numbers("IIII")
        data = frames.frame(interface, octets.take(captured), length)
        yield CapturedFrame(seconds * NS_PER_S + fraction * unit_ns, data)


def _pcapng(octets: _Octets) -> Iterator[CapturedFrame]:
    frames = _Frames()
    interfaces: list[_Interface] = []
    while octets:
        kind = octets.number()
        if kind == _SECTION:
            octets.begin_section()
            interfaces = []
        length = octets.number()
        if length < 12 or length % 4:
            raise CaptureError(f"a block of {length} octets")
        body = _Octets(octets.take(length - 12), octets.order)
        if octets.number() != length:
            raise CaptureError("the two lengths of a block differ")
        if kind == _SECTION:
            _, major, minor = body.numbers("IHH")
            if major != 1:
                raise CaptureError(f"pcapng of version {major}.{minor}; expected 1.0")
        elif kind == _INTERFACE:
            link_type, _, snap_octets = body.numbers("HHI")
            options = body.options()
            fcs = int.from_bytes(options.get(_IF_FCSLEN, b"")[:1], "big")
            resolution = (options.get(_IF_TSRESOL) or bytes([_MICROSECONDS]))[0]
            interfaces.append(_Interface(link_type, fcs, snap_octets, resolution))
        elif kind in {_ENHANCED, _OBSOLETE, _SIMPLE}:
            yield _frame(kind, body, interfaces, frames)


def _frame(kind: int, body: _Octets, interfaces: list[_Interface], frames: _Frames) -> CapturedFrame:
    """The frame of a block."""
    if kind == _SIMPLE:
        index, length = 0, body.number()
    else:
        index = body.number() if kind == _ENHANCED else body.numbers("HH")[0]
        high, low, captured, length = body.numbers("IIII")
    if index >= len(interfaces):
        raise CaptureError(f"a packet of interface {index}, which the capture does not describe")
    interface = interfaces[index]
    if kind == _SIMPLE:
        data = body.take(min(length, interface.snap_octets or length))
        return CapturedFrame(None, frames.frame(interface, data, length))
    data = body.take(captured)
    body.take(-captured % 4)
    options = body.options()
    flags = _Octets(options[_EPB_FLAGS], body.order).number() if _EPB_FLAGS in options else 0
    return CapturedFrame(interface.time_ns(high, low), frames.frame(interface, data, length, flags))
