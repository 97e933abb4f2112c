"""Full sockets and queues: the switch waits, its own queues build; only what can never be sent is dropped."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, Any

from tests.switch.daemon.io.conftest import PAIR

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Make, Net, Wait

HEAD = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb5"


def test_a_slow_link_makes_the_queues_of_the_switch_build(net: Net, switch: Make, wait: Wait) -> None:
    """SEMANTICS §1 row 7: under Mininet's HTB nothing is lost below the switch; its own queue overflows."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    net.tc("qdisc", "add", "dev", "p1", "root", "handle", "1:", "htb", "default", "1")
    net.tc(
        "class", "add", "dev", "p1", "parent", "1:", "classid", "1:1", "htb", "rate", "20mbit", "burst", "15k"
    )
    h0, h1 = net.wire("h0"), net.wire("h1")
    loop, core = switch(PAIR)
    for i in range(1000):
        h0.send(HEAD + struct.pack("!I", i) + bytes(1400))
    wait(lambda: loop.status(0).rx_packets == 1000, "all came in")
    wait(lambda: loop.status(1).tx_packets + core.read("dropped") == 1000, "all sent or dropped in the queue")
    assert core.read("blocks") > 0
    assert core.read("dropped") > 0
    numbers = [struct.unpack_from("!I", h1.receive(), 14)[0] for _ in range(loop.status(1).tx_packets)]
    assert numbers == sorted(set(numbers))
    assert '"drops":0' in net.tc("-s", "-j", "qdisc", "show", "dev", "p1").replace(" ", "")
    status = loop.status(1)
    assert (status.tx_refused, status.tx_errors) == (0, 0)
    wait(lambda: loop.status(1).blocked == 0, "no longer blocked")
    assert status.tx_waits > 0


def test_no_second_queue_grows_outside_the_core(net: Net, switch: Make) -> None:
    """However long a port is overloaded, what the core has given out stays within a few batches."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    net.tc("qdisc", "add", "dev", "p1", "root", "tbf", "rate", "50mbit", "burst", "3k", "limit", "1m")
    h0 = net.wire("h0")
    loop, core = switch(PAIR)
    most = 0
    while loop.status(1).tx_packets < 3000:
        for _ in range(20):
            h0.send(HEAD + bytes(1400))
        most = max(most, core.read("slots"))
    assert 0 < most <= 256


def test_a_tiny_queue_below_the_socket_loses_nothing(net: Net, switch: Make, wait: Wait) -> None:
    """The discipline refuses frames (ENOBUFS) long before the socket is full: they are sent again."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    net.tc("qdisc", "add", "dev", "p1", "root", "tbf", "rate", "20mbit", "burst", "3k", "limit", "6k")
    h0, h1 = net.wire("h0"), net.wire("h1")
    loop, core = switch(PAIR)
    for i in range(300):
        h0.send(HEAD + struct.pack("!I", i) + bytes(1400))
    wait(lambda: loop.status(1).tx_packets + core.read("dropped") == 300, "all sent or dropped in the queue")
    numbers = [struct.unpack_from("!I", h1.receive(), 14)[0] for _ in range(loop.status(1).tx_packets)]
    assert numbers == sorted(set(numbers))
    assert loop.status(1).tx_refused == 0
    assert loop.status(1).tx_waits > 0


def test_one_blocked_port_does_not_hold_up_the_others(net: Net, switch: Make, wait: Wait) -> None:
    for i in range(4):
        net.veth(f"p{i}", f"h{i}")
    net.tc("qdisc", "add", "dev", "p1", "root", "tbf", "rate", "8kbit", "burst", "2k", "limit", "1m")
    h0, h2, h3 = net.wire("h0"), net.wire("h2"), net.wire("h3")
    loop, _ = switch({i: f"p{i}" for i in range(4)})
    for _ in range(1000):
        h0.send(HEAD + bytes(1400))
    wait(lambda: loop.status(1).blocked == 1, "port 1 is blocked")
    for i in range(1000):
        frame = HEAD + struct.pack("!I", i) + bytes(100)
        h2.send(frame)
        assert h3.receive() == frame
    assert loop.status(1).blocked == 1


def test_a_frame_longer_than_the_mtu_is_dropped_by_reason(net: Net, switch: Make, wait: Wait) -> None:
    net.veth("p0", "h0", mtu=9000)
    net.veth("p1", "h1")
    h0, h1 = net.wire("h0"), net.wire("h1")
    loop, _ = switch(PAIR)
    h0.send(HEAD + bytes(5000))
    h0.send(HEAD + b"next" + bytes(60))
    assert h1.receive() == HEAD + b"next" + bytes(60)
    assert loop.status(1).tx_too_long == 1


def test_a_frame_that_the_peer_never_takes_does_not_block_the_port(
    net: Net, switch: Make, wait: Wait
) -> None:
    """A veth peer with a smaller MTU refuses with ENOBUFS, which looks like a full queue."""
    net.veth("p0", "h0", mtu=9000)
    net.veth("p1", "h1", mtu=9000)
    net.ip("link", "set", "dev", "h1", "mtu", "1500")
    h0, h1 = net.wire("h0"), net.wire("h1")
    loop, _ = switch(PAIR)
    for _ in range(50):
        h0.send(HEAD + bytes(5000))
    h0.send(HEAD + b"next" + bytes(60))
    assert h1.receive() == HEAD + b"next" + bytes(60)
    assert loop.status(1).tx_refused == 50


def test_a_frame_too_short_for_ethernet_is_dropped_by_reason(net: Net, switch: Make, wait: Wait) -> None:
    tun = net.tap("t0", tun=True)
    net.veth("p1", "h1")
    h1 = net.wire("h1")
    loop, _ = switch({0: "t0", 1: "p1"})
    tun.send(b"\x45short")
    tun.send(b"\x45" + bytes(59))
    assert h1.receive() == b"\x45" + bytes(59)
    assert loop.status(1).tx_invalid == 1


def test_control_calls_are_not_starved_at_full_load(net: Net, switch: Make, wait: Wait, library: Any) -> None:
    """A mutex prefers the busy thread; the loop must step back for whoever waits."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    h0 = net.wire("h0")
    loop, core = switch(PAIR)
    ended = threading.Event()

    def load() -> None:
        while not ended.is_set():
            h0.send(HEAD + bytes(60))

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait(lambda: loop.status(0).rx_packets > 1000, "full load")
        before = loop.now_ns()
        for _ in range(2000):
            core.lib.standin_control_call(core.handle)
        # Each call alone may wait for a batch (well under 1 ms), never for a long row of batches.
        assert loop.now_ns() - before < 20_000_000_000
    finally:
        ended.set()
        thread.join()
