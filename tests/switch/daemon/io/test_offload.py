"""Offloads that hosts leave on: checksums completed, super-frames cut, so that hosts need no ethtool."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.switch.daemon.io.conftest import PAIR

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Make, Net, Space

NEEDS_CSUM, GSO_TCP4, GSO_TCP6, GSO_UDP = 1, 1, 4, 5
UDP_SEGMENT = 103
TCP, UDP = 6, 17
VNET = "struct virtio_net_hdr *"


def ones_sum(data: bytes) -> int:
    """Internet checksum arithmetic (RFC 1071), written the slow and plain way."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo(version: int, proto: int, length: int) -> bytes:
    if version == 4:
        return (
            socket.inet_aton("10.0.0.1")
            + socket.inet_aton("10.0.0.2")
            + struct.pack("!BBH", 0, proto, length)
        )
    both = socket.inet_pton(socket.AF_INET6, "fd00::1") + socket.inet_pton(socket.AF_INET6, "fd00::2")
    return both + struct.pack("!IHBB", length, 0, 0, proto)


def packet(
    version: int,
    proto: int,
    payload: bytes,
    *,
    partial: bool,
    tags: bytes = b"",
    link: bool = True,
    seq: int = 1000,
    flags: int = 0x18,
    ident: int = 7,
    extension: bytes = b"",
) -> bytes:
    """A TCP or UDP packet; partial: its checksum field holds only the sum of the pseudo header."""
    if proto == TCP:
        head = struct.pack("!HHIIBBHHH", 1234, 80, seq, 5, 0x50, flags, 4096, 0, 0)
        field = 16
    else:
        head = struct.pack("!HHHH", 1234, 4791, 8 + len(payload), 0)
        field = 6
    length = len(head) + len(payload)
    total = ones_sum(pseudo(version, proto, length))
    if not partial:
        total = ones_sum(pseudo(version, proto, length) + head + payload) ^ 0xFFFF or 0xFFFF
    head = head[:field] + struct.pack("!H", total) + head[field + 2 :]
    if version == 4:
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, ident, 0x4000, 64, proto, 0) + pseudo(4, 0, 0)[:8]
        ip = ip[:10] + struct.pack("!H", ones_sum(ip) ^ 0xFFFF) + ip[12:]
    else:
        following = 60 if extension else proto
        ip = (
            struct.pack("!IHBB", 6 << 28, length + len(extension), following, 64)
            + pseudo(6, 0, 0)[:32]
            + extension
        )
    ether = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02" + tags + (b"\x08\0" if version == 4 else b"\x86\xdd")
    return (ether if link else b"") + ip + head + payload


def vnet(flags: int, gso: int, header: int, size: int, start: int, offset: int) -> bytes:
    return struct.pack("=BBHHHH", flags, gso, header, size, start, offset)


@pytest.mark.parametrize("proto", [TCP, UDP])
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 1400])
def test_a_checksum_left_to_hardware_is_completed(
    net: Net, switch: Make, version: int, proto: int, size: int
) -> None:
    h0, h1 = net.pair(offload=True)
    loop, _ = switch(PAIR)
    payload = random.Random(size).randbytes(size)
    start = 14 + (20 if version == 4 else 40)
    h0.send(
        vnet(NEEDS_CSUM, 0, 0, 0, start, 16 if proto == TCP else 6)
        + packet(version, proto, payload, partial=True)
    )
    assert h1.receive() == packet(version, proto, payload, partial=False)
    assert loop.status(0).checksums == 1


def test_a_checksum_under_a_vlan_tag_is_completed(net: Net, switch: Make) -> None:
    """The kernel counts from the start of the frame without the tag that it took out."""
    h0, _ = net.pair(offload=True)
    loop, _ = switch(PAIR)
    inner = net.wire("h1")
    tags = struct.pack("!HHHH", 0x88A8, 5, 0x8100, 6)
    h0.send(vnet(NEEDS_CSUM, 0, 0, 0, 14 + 8 + 20, 6) + packet(4, UDP, b"tagged", partial=True, tags=tags))
    assert inner.receive() == packet(4, UDP, b"tagged", partial=False, tags=tags[4:])
    assert (loop.status(0).checksums, loop.status(0).tags) == (1, 1)


@pytest.mark.parametrize(
    "tags", [b"", struct.pack("!HH", 0x8100, 5), struct.pack("!HHHH", 0x88A8, 5, 0x8100, 6)]
)
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(("size", "step"), [(1000, 1000), (1001, 1000), (5000, 1400), (60000, 536)])
def test_a_tcp_super_frame_is_cut(
    net: Net, switch: Make, version: int, size: int, step: int, tags: bytes
) -> None:
    """Each segment has its own lengths, numbers, checksums; CWR is on the first, FIN and PSH on the last."""
    h0, h1 = net.pair(offload=True)
    loop, _ = switch(PAIR)
    payload = random.Random(size).randbytes(size)
    start = 14 + len(tags) + (20 if version == 4 else 40)
    kind = (GSO_TCP4 if version == 4 else GSO_TCP6) | 0x80
    frame = packet(version, TCP, payload, partial=True, flags=0x99, tags=tags)
    h0.send(vnet(NEEDS_CSUM, kind, start + 20, step, start, 16) + frame)
    parts = [payload[i : i + step] for i in range(0, size, step)]
    for i, part in enumerate(parts):
        flags = 0x10 | (0x80 if i == 0 else 0) | (0x09 if i == len(parts) - 1 else 0)
        want = packet(
            version, TCP, part, partial=False, seq=1000 + i * step, flags=flags, ident=7 + i, tags=tags[4:]
        )
        assert h1.receive() == want
    assert loop.status(0).rx_packets == len(parts)


@pytest.mark.parametrize("version", [4, 6])
def test_a_udp_super_frame_is_cut(net: Net, switch: Make, version: int) -> None:
    h0, h1 = net.pair(offload=True)
    switch(PAIR)
    payload = random.Random(1).randbytes(9_999)
    start = 14 + (20 if version == 4 else 40)
    try:
        h0.send(
            vnet(NEEDS_CSUM, GSO_UDP, start + 8, 1000, start, 6) + packet(version, UDP, payload, partial=True)
        )
    except OSError as error:
        pytest.skip(f"this kernel takes no UDP super-frame from a packet socket: {error}")
    for i in range(10):
        want = packet(version, UDP, payload[i * 1000 : i * 1000 + 1000], partial=False, ident=7 + i)
        assert h1.receive() == want


def test_an_extension_header_is_passed_over(net: Net, switch: Make) -> None:
    h0, h1 = net.pair(offload=True)
    switch(PAIR)
    options = bytes([TCP, 0, 1, 4, 0, 0, 0, 0])
    payload = bytes(range(256)) * 8
    start = 14 + 40 + 8
    frame = packet(6, TCP, payload, partial=True, extension=options)
    h0.send(vnet(NEEDS_CSUM, GSO_TCP6, start + 20, 1024, start, 16) + frame)
    for i, flags in ((0, 0x10), (1, 0x18)):
        part = payload[i * 1024 : i * 1024 + 1024]
        want = packet(6, TCP, part, partial=False, seq=1000 + i * 1024, flags=flags, extension=options)
        assert h1.receive() == want


def host(net: Net, name: str, number: int) -> Space:
    """A namespace with one interface, offloads as the kernel sets them."""
    space = net.space()
    net.move(name, space)
    with space.entered():
        net.ip("address", "add", f"10.0.0.{number}/24", "dev", name)
        net.ip("link", "set", "dev", name, "up")
        for knob in ("all", "default", name):
            Path(f"/proc/sys/net/ipv6/conf/{knob}/disable_ipv6").write_text("0")
        net.ip("address", "add", f"fd00::{number}/64", "dev", name, "nodad")
        while not net.ready(name):
            select.select([], [], [], 0.002)
    return space


def hosts(net: Net) -> tuple[Space, Space]:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    return host(net, "h0", 1), host(net, "h1", 2)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_tcp_between_hosts_that_left_offloads_on(
    net: Net, switch: Make, family: socket.AddressFamily
) -> None:
    """SEMANTICS §1 row 19: with simple_switch this needs ethtool -K rx off tx off."""
    left, right = hosts(net)
    loop, _ = switch(PAIR)
    data = random.Random(3).randbytes(4_000_000)
    address = "10.0.0.2" if family == socket.AF_INET else "fd00::2"
    with right.entered():
        listener = socket.create_server((address, 5001), family=family)
    with left.entered():
        client = socket.socket(family, socket.SOCK_STREAM)
    with listener, client:
        listener.settimeout(30)
        client.settimeout(30)
        client.connect((address, 5001))
        server, _ = listener.accept()
        server.settimeout(30)

        def send() -> None:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        got = bytearray()
        with server:
            while part := server.recv(1 << 16):
                got += part
        sender.join()
    assert got == data
    assert loop.status(0).super_frames > 0
    assert loop.status(1).checksums > 0
    assert loop.status(1).tx_too_long == 0


def test_udp_between_hosts_that_left_offloads_on(net: Net, switch: Make) -> None:
    left, right = hosts(net)
    loop, _ = switch(PAIR)
    with right.entered():
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with left.entered():
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, client:
        server.bind(("10.0.0.2", 5002))
        server.settimeout(30)
        client.connect(("10.0.0.2", 5002))
        client.send(b"one")
        assert server.recv(2000) == b"one"
        client.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
        client.send(bytes(range(256)) * 20)
        assert b"".join(server.recv(2000) for _ in range(6)) == bytes(range(256)) * 20
    assert loop.status(0).checksums + loop.status(0).super_frames > 0


def test_a_super_frame_on_a_link_without_header_is_cut(inside: Any, ffi: Any) -> None:
    """The cutting itself, without a kernel: an interface such as TUN has no Ethernet header."""
    payload = random.Random(5).randbytes(3000)
    frame = packet(4, TCP, payload, partial=True, link=False)
    cut, out = ffi.new("tri_cut *"), ffi.new("uint8_t[]", 2000)
    notes = ffi.from_buffer(vnet(NEEDS_CSUM, GSO_TCP4, 40, 1400, 20, 16))
    assert inside.tri_cut_begin(cut, frame, len(frame), ffi.cast(VNET, notes), 1) == 0
    got = []
    while length := inside.tri_cut_next(cut, out):
        got.append(bytes(ffi.buffer(out, length)))
    want = [
        packet(
            4,
            TCP,
            payload[i : i + 1400],
            partial=False,
            link=False,
            seq=1000 + i,
            ident=7 + n,
            flags=0x18 if i == 2800 else 0x10,
        )
        for n, i in enumerate(range(0, 3000, 1400))
    ]
    assert want == got


@pytest.mark.parametrize("words", range(5))
def test_a_tcp_header_that_is_too_short_is_not_cut(inside: Any, ffi: Any, words: int) -> None:
    """Its checksum would be written behind a small segment."""
    frame = bytearray(packet(4, TCP, bytes(100), partial=True, link=False))
    frame[32] = words << 4
    notes = ffi.from_buffer(vnet(0, GSO_TCP4, 40, 1, 0, 0))
    assert (
        inside.tri_cut_begin(ffi.new("tri_cut *"), bytes(frame), len(frame), ffi.cast(VNET, notes), 1) == -1
    )


def test_no_header_crashes_the_cutting(inside: Any, ffi: Any) -> None:
    """Whatever stands in a frame and in the kernel's notes, cutting ends and stays inside its buffers."""
    rng = random.Random(11)
    cut, out = ffi.new("tri_cut *"), ffi.new("uint8_t[]", 140_000)
    for _ in range(20_000):
        base = packet(
            rng.choice((4, 6)), rng.choice((TCP, UDP)), rng.randbytes(rng.randrange(200)), partial=True
        )
        frame = bytearray(base[: rng.randrange(len(base) + 1)])
        for _ in range(rng.randrange(4)):
            if frame:
                frame[rng.randrange(len(frame))] = rng.randrange(256)
        head = vnet(
            rng.randrange(4),
            rng.choice((0, 1, 3, 4, 5, 0x81)),
            54,
            rng.choice((0, 1, 9, 1000, 65535)),
            rng.choice((14, 34, 54, rng.randrange(65536))),
            rng.choice((6, 16, rng.randrange(65536))),
        )
        whole, notes = bytes(frame), ffi.from_buffer(head)
        if inside.tri_cut_begin(cut, whole, len(frame), ffi.cast(VNET, notes), rng.randrange(3)) == 0:
            parts = 0
            while inside.tri_cut_next(cut, out):
                parts += 1
            assert 0 < parts <= len(frame)
        scratch = ffi.new("uint8_t[]", [*frame, 0])
        inside.tri_checksum(scratch, len(frame), rng.randrange(300), rng.randrange(300))
        assert scratch[len(frame)] == 0
