"""Frames of every length and interface type pass unchanged, each once."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

from tests.switch.daemon.io.conftest import PAIR

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Make, Net, Wait


def ethernet(payload: bytes, type_: int = 0x88B5, to: bytes = b"\x02\0\0\0\0\x01") -> bytes:
    return to + b"\x02\0\0\0\0\x02" + struct.pack("!H", type_) + payload


@pytest.mark.parametrize("length", [14, 15, 33, 59, 60, 64, 1500, 1514, 9014, 32768, 65535, 65549])
def test_a_frame_of_any_length_crosses_veth_both_ways(net: Net, switch: Make, length: int) -> None:
    h0, h1 = net.pair(mtu=65535)
    loop, _ = switch(PAIR)
    frame = ethernet(random.Random(length).randbytes(length - 14))
    h0.send(frame)
    assert h1.receive() == frame
    h1.send(frame)
    assert h0.receive() == frame
    assert loop.status(0).rx_bytes == loop.status(1).rx_bytes == length


@pytest.mark.parametrize("length", [1, 2, 13, 14, 20, 1500, 65521])
def test_a_tun_interface_without_link_header_takes_any_length(net: Net, switch: Make, length: int) -> None:
    """SEMANTICS §3: insist on no 14 bytes, neither on input nor on output."""
    left, right = net.tap("t0", tun=True), net.tap("t1", tun=True)
    switch({0: "t0", 1: "t1"})
    frame = b"\x45" + random.Random(length).randbytes(length - 1)
    left.send(frame)
    assert right.receive() == frame


@pytest.mark.parametrize("length", [14, 60, 1514, 65535])
def test_a_tap_interface_and_veth_exchange_frames(net: Net, switch: Make, length: int) -> None:
    tap = net.tap("t0", tun=False)
    net.veth("p1", "h1", mtu=65535)
    h1 = net.wire("h1")
    switch({0: "t0", 1: "p1"})
    frame = ethernet(random.Random(length).randbytes(length - 14))
    tap.send(frame)
    assert h1.receive() == frame
    h1.send(frame)
    assert tap.receive() == frame


def test_a_burst_keeps_its_order_and_every_frame(net: Net, switch: Make) -> None:
    h0, h1 = net.pair()
    switch(PAIR)
    frames = [ethernet(struct.pack("!I", i) + bytes(i % 1400)) for i in range(2000)]
    for frame in frames:
        h0.send(frame)
    assert frames == [h1.receive() for _ in frames]


def test_own_frames_are_not_received_again(net: Net, switch: Make) -> None:
    """What the switch sends on a port passes every packet socket of the host; it must not come in there."""
    h0, h1 = net.pair()
    loop, _ = switch(PAIR)
    for i in range(100):
        h0.send(ethernet(struct.pack("!I", i)))
        h1.receive()
    assert h0.silent()
    assert loop.status(0).rx_packets == 100
    assert loop.status(1).rx_packets == 0
    assert loop.status(0).tx_packets == 0


def test_loopback_carries_each_frame_once(net: Net, switch: Make) -> None:
    """A frame sent on lo is seen going out and coming in; only the latter is a reception."""
    net.ip("link", "set", "dev", "lo", "up")
    net.veth("p1", "h1")
    h1, lo = net.wire("h1"), net.wire("lo")
    loop, _ = switch({0: "lo", 1: "p1"})
    frame = ethernet(b"over loopback")
    lo.send(frame)
    assert h1.receive() == frame
    assert loop.status(0).rx_packets == 1


def test_frames_for_other_hosts_are_received(net: Net, switch: Make) -> None:
    """Promiscuous mode: a switch takes frames whatever their destination."""
    h0, h1 = net.pair()
    switch(PAIR)
    for to in (b"\x02\xaa\xbb\xcc\xdd\xee", b"\xff" * 6, b"\x01\0\x5e\0\0\x01", b"\x01\x80\xc2\0\0\x01"):
        frame = ethernet(b"x" * 50, to=to)
        h0.send(frame)
        assert h1.receive() == frame


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param([(0x8100, 0x6005)], id="one"),
        pytest.param([(0x8100, 0x0000)], id="priority-tag-of-zero"),
        pytest.param([(0x88A8, 0x0064), (0x8100, 0xE00A)], id="two"),
        pytest.param([(0x8100, 0x0FFF), (0x8100, 0x0001), (0x8100, 0x0002)], id="three"),
    ],
)
def test_vlan_tags_stay_in_the_frame(net: Net, switch: Make, wait: Wait, tags: list[tuple[int, int]]) -> None:
    """The kernel takes the outer tag out of received frames; the loop puts it back."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    h0 = net.wire("h0")
    h1 = net.wire("h1")
    loop, _ = switch(PAIR)
    head = b"".join(struct.pack("!HH", tpid, tci) for tpid, tci in tags)
    addresses = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02"
    frame = addresses + head + struct.pack("!H", 0x88B5) + b"payload" * 8
    h0.send(frame)
    # The receiver's own kernel strips the outer tag again: without it the frame must be the same.
    assert h1.receive() == addresses + frame[16:]
    assert loop.status(0).tags == 1
    wait(lambda: loop.status(1).tx_bytes == len(frame), "the whole frame was sent")


def test_frames_wait_for_the_time_that_the_core_gives(net: Net, switch: Make) -> None:
    """A frame of the future is held: never early, in order, and none is lost."""
    h0, h1 = net.pair()
    loop, _ = switch(PAIR, delay_ns=50_000_000)
    frames = [ethernet(struct.pack("!I", i) + bytes(60)) for i in range(300)]
    before = loop.now_ns()
    for frame in frames:
        h0.send(frame)
    assert h1.receive() == frames[0]
    assert loop.now_ns() - before >= 50_000_000
    assert frames[1:] == [h1.receive() for _ in frames[1:]]


def test_frames_of_the_future_are_given_back_at_the_end(net: Net, switch: Make, wait: Wait) -> None:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    h0 = net.wire("h0")
    loop, core = switch(PAIR, delay_ns=3_600_000_000_000)
    h0.send(ethernet(bytes(60)))
    wait(lambda: core.read("slots") == 1, "the frame is in the core")
    loop.close()
    assert core.read("slots") == 0
