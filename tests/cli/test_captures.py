# SPDX-License-Identifier: Apache-2.0
"""Files of packets: those of other programs are read, and what is no whole one is told in a line, and soon."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, PcapWriter

from tailrace.cli.inspect.packet_argument import MOST_PACKETS, read_packets
from tailrace.codec.captures import CaptureError, packets_of
from tailrace.spec.errors import FileError

FRAMES = [bytes(range(size)) for size in (14, 15, 64, 255)]


def _block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def _section(order: str) -> bytes:
    return _block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def _interface(order: str = "<", link_type: int = 1, most: int = 0, options: bytes = b"") -> bytes:
    return _block(1, struct.pack(order + "HHI", link_type, 0, most) + options, order)


def _simple(order: str, most: int = 0) -> bytes:
    return _interface(order, most=most) + _block(3, struct.pack(order + "I", 16) + bytes(16), order)


def _enhanced(interface: int = 0, captured: int = 16, length: int = 16, options: bytes = b"") -> bytes:
    numbers = struct.pack("<IIIII", interface, 0, 0, captured, length)
    return _block(6, numbers + bytes(range(captured)) + bytes(-captured % 4) + options)


@pytest.mark.parametrize(
    ("order", "nano"), [("<", False), (">", False), ("<", True), (">", True)]
)  # fmt: skip
def test_pcap(order: str, nano: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    with PcapWriter(str(path), endianness=order, nano=nano, linktype=1) as writer:
        for frame in FRAMES:
            writer.write(Ether(frame))
    assert read_packets(str(path)) == FRAMES
    assert not list(packets_of(path.read_bytes()[:24]))
    path.write_bytes(path.read_bytes()[:24])
    with pytest.raises(FileError, match="a capture without packets"):
        read_packets(str(path))


def test_pcapng(tmp_path: Path) -> None:
    """Enhanced, obsolete and simple blocks, and sections of either order."""
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for frame in FRAMES:
            writer.write(Ether(frame))
    assert read_packets(str(path)) == FRAMES
    obsolete = _block(2, struct.pack("<HHIIII", 0, 0, 0, 0, 6, 6) + b"packet\0\0")
    both = (
        _section("<")
        + _interface()
        + obsolete
        + _block(10, b"what")
        + _section(">")
        + _simple(">")
        + _section("<")
        + _simple("<", most=16)
    )
    path.write_bytes(both)
    assert read_packets(str(path)) == [b"packet", bytes(16), bytes(16)]


PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
RECORD = bytes(8) + struct.pack("<II", 64, 64) + bytes(64)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"\x1f\x8b" + bytes(40), "neither pcap nor pcapng"),
        (PCAP[:20], "it is cut off"),
        (PCAP + RECORD[:-1], "it is cut off"),
        (PCAP + RECORD[:16], "it is cut off"),
        (PCAP + RECORD + RECORD[:3], "it is cut off"),
        (PCAP + bytes(8) + struct.pack("<II", 0xFFFFFFFF, 64) + bytes(64), "it is cut off"),
        (_section("<")[:-1], "it is cut off"),
        (_section("<") + struct.pack("<II", 6, 0xFFFFFFFC), "it is cut off"),
        (_section("<") + struct.pack("<II", 6, 8) + bytes(8), "a block of 8 octets"),
        (_section("<") + _interface() + _block(6, struct.pack("<IIIII", 0, 0, 0, 65, 65) + bytes(64)), "it is cut off"),
        (_section("<") + _block(6, bytes(4))[:-4] + bytes(4), "the two lengths of a block differ"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "a section without its magic"),
        (PCAP + RECORD * (MOST_PACKETS + 1), "more than 1000 packets"),
        (PCAP, "a capture without packets"),
        (_section("<"), "a capture without packets"),
        (_section("<") + _interface(link_type=113), "a capture without packets"),
        (PCAP[:4] + b"\x01\0\x05\0" + PCAP[8:], "pcap of version 1.5"),
        (_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)), "pcapng of version 2.0"),
        (PCAP[:20] + struct.pack("<I", 113) + RECORD, "packet 1: link type 113 .LINUX_SLL"),
        (PCAP[:20] + struct.pack("<I", 147) + RECORD, "packet 1: link type 147; expected 1, Ethernet"),
        (PCAP + RECORD + bytes(8) + struct.pack("<II", 64, 1500) + bytes(64), "packet 2: 64 of its 1500 octets"),
        (PCAP + bytes(8) + struct.pack("<II", 64, 60) + bytes(64), "packet 1: 64 of its 60 octets"),
        (PCAP[:20] + struct.pack("<I", 0x34000001) + RECORD, "packet 1: a frame check sequence of 6 octets"),
        (PCAP[:20] + struct.pack("<I", 0x24000001) + bytes(8) + struct.pack("<II", 3, 3) + bytes(3), "packet 1: 3 octets"),
        (_section("<") + _enhanced(), "a packet of interface 0, which the capture does not describe"),
        (_section("<") + _interface() + _section("<") + _enhanced(), "a packet of interface 0"),
        (_section("<") + _interface() + _interface(link_type=276) + _enhanced(1), "packet 1: link type 276 .LINUX_SLL2"),
        (_section("<") + _interface() + _enhanced(captured=16, length=17), "packet 1: 16 of its 17 octets"),
        (_section("<") + _simple("<", most=8), "packet 1: 8 of its 16 octets"),
        (_section("<") + _interface(options=struct.pack("<HHI", 13, 1, 2)) + _enhanced(), "packet 1: a frame check sequence of 2"),
        (_section("<") + _interface() + _enhanced(options=struct.pack("<HHI", 2, 4, 1 << 24)), "packet 1: it was received with link errors"),
        (_section("<") + _interface(options=b"\x0d\0\xff\xff") + _enhanced(), "it is cut off"),
    ],
)  # fmt: skip
def test_what_is_no_whole_file(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"{path}: {problem}"):
        read_packets(str(path))


def test_check_sequences() -> None:
    """They are no part of a frame, whether the file, an interface or a packet says that they are there."""
    plain, fcs = bytes(range(16)), bytes(range(12))
    pcap = PCAP[:20] + struct.pack("<I", 0x24000001) + bytes(8) + struct.pack("<II", 16, 16) + plain
    assert [fcs] == list(packets_of(pcap))
    for octets_or_bits in (4, 32):
        interface = _interface(options=struct.pack("<HHIHH", 13, 1, octets_or_bits, 0, 0))
        assert [fcs] == list(packets_of(_section("<") + interface + _enhanced()))
    flagged = _enhanced(options=struct.pack("<HH4sHHI", 1, 3, b"why", 2, 4, 4 << 5 | 1))
    ordinary = _enhanced(interface=1)
    interfaces = _interface() + _interface() + _interface(link_type=113)
    assert [fcs, plain] == list(packets_of(_section("<") + interfaces + flagged + ordinary))


def test_what_is_no_file(tmp_path: Path) -> None:
    """Nothing blocks, and nothing is read without an end."""
    path = tmp_path / "a.pcap"
    os.mkfifo(path)
    with pytest.raises(FileError, match="no regular file"):
        read_packets(str(path))
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(FileError, match="no regular file"):
        read_packets(str(path))


@given(st.binary(max_size=60), st.integers(0, 200), st.booleans())
def test_damage(damage: bytes, place: int, ng: bool) -> None:
    """Whatever stands where: packets that are all in the file, or the error."""
    whole = (
        _section("<") + _simple("<") + _enhanced(options=struct.pack("<HHI", 2, 4, 1))
        if ng
        else PCAP + RECORD
    )
    content = whole[:place] + damage + whole[place + len(damage) :]
    with contextlib.suppress(CaptureError):
        assert sum(map(len, packets_of(content))) <= len(content)
