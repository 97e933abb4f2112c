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

from tailrace.cli.inspect.captures import CaptureError, packets_of
from tailrace.cli.inspect.packet_words import MOST_PACKETS, read_packets
from tailrace.words.errors import FileError

FRAMES = [bytes(range(size)) for size in (14, 15, 64, 255)]


def _block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def _section(order: str) -> bytes:
    return _block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def _simple(order: str) -> bytes:
    interface = _block(1, struct.pack(order + "HHI", 1, 0, 16), order)
    return interface + _block(3, struct.pack(order + "I", 64) + bytes(16), order)


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


def test_pcapng(tmp_path: Path) -> None:
    """Enhanced, obsolete and simple blocks, and sections of either order."""
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for frame in FRAMES:
            writer.write(Ether(frame))
    assert read_packets(str(path)) == FRAMES
    obsolete = _block(2, struct.pack("<HHIIII", 0, 0, 0, 0, 6, 60) + b"packet\0\0")
    both = (
        _section("<")
        + obsolete
        + _block(10, b"what")
        + _section(">")
        + _simple(">")
        + _section("<")
        + _simple("<")
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
        (_section("<") + _block(6, struct.pack("<IIIII", 0, 0, 0, 65, 65) + bytes(64)), "it is cut off"),
        (_section("<") + _block(6, bytes(4))[:-4] + bytes(4), "the ends of a block do not agree"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "a section without its magic"),
        (PCAP + RECORD * (MOST_PACKETS + 1), "more than 1000 packets"),
    ],
)
def test_what_is_no_whole_file(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"{path}: (no file of packets: )?{problem}"):
        read_packets(str(path))


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
        _section("<") + _simple("<") + _block(6, struct.pack("<IIIII", 0, 0, 0, 6, 6) + bytes(8))
        if ng
        else PCAP + RECORD
    )
    content = whole[:place] + damage + whole[place + len(damage) :]
    with contextlib.suppress(CaptureError):
        assert sum(map(len, packets_of(content))) <= len(content)
