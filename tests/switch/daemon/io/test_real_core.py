"""The packet loop around the real switch core: routes, queues, rates, digests, a new program in traffic."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, SwitchConfig, V1ModelSwitch
from tailrace.switch.daemon.ports import IoLoop, io_library

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Net, Wait

BUILD = Path(__file__).resolve().parents[3] / "programs" / "build"
SANITIZE = os.environ.get("ASAN") == "1"
NEXT_HOP = 0x020000000003


def program(name: str) -> SwitchProgram:
    return load_program((BUILD / f"{name}.json").read_bytes(), source=name, sanitize=SANITIZE)


def ipv4(number: int, payload: int, *, to: int = 0x0A010001, ttl: int = 64) -> bytes:
    """A frame to 10.1.0.1; `number` is its identification."""
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + payload, number, 0, ttl, 17, 0, 0x0A000001, to)
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", total ^ 0xFFFF) + ip[12:]
    return b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0" + ip + bytes(payload)


def add_route(sw: V1ModelSwitch) -> None:
    """10.1.0.0/16 leaves on port 1."""
    model = sw.model
    table = model.table("L3Ingress.route")
    forward = next(a for a in table.actions if model.actions[a].name == "L3Ingress.forward")
    mask = b"\xff\xff\0\0"
    call = ActionCall(forward, (NEXT_HOP, 1))
    sw.table_insert(table.index, b"\x0a\x01\0\0", mask, prefix_bits=16, target=call)


@contextmanager
def router(
    ports: dict[int, str], config: SwitchConfig | None = None
) -> Iterator[tuple[V1ModelSwitch, IoLoop]]:
    sw = V1ModelSwitch(program("basic_l3"), config)
    add_route(sw)
    try:
        with IoLoop(sw, ports, library=io_library(SANITIZE)) as loop:
            loop.start()
            yield sw, loop
    finally:
        sw.close()


def test_a_packet_is_routed(net: Net) -> None:
    h0, h1 = net.pair()
    with router({0: "p0", 1: "p1"}) as (sw, loop):
        h0.send(ipv4(1, 100, to=0x0B000001))
        h0.send(ipv4(2, 100))
        got = h1.receive()
        assert got[:6] == NEXT_HOP.to_bytes(6, "big")
        assert got[12:] == ipv4(2, 100, ttl=63)[12:]
        assert sw.drops()["ingress_drop"] == 1
        assert loop.status(0).rx_packets == 2


def test_queues_of_the_core_build_behind_a_slow_link(net: Net, wait: Wait) -> None:
    """Back pressure of the interface reaches the traffic manager: what is lost is lost in its queue."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    net.tc("qdisc", "add", "dev", "p1", "root", "tbf", "rate", "20mbit", "burst", "3k", "limit", "1m")
    h0, h1 = net.wire("h0"), net.wire("h1")
    with router({0: "p0", 1: "p1"}) as (sw, loop):
        for i in range(1000):
            h0.send(ipv4(i, 1400))
        wait(lambda: loop.status(0).rx_packets == 1000, "all came in")
        wait(
            lambda: loop.status(1).tx_packets + sw.drops().get("queue_packets", 0) == 1000, "sent or dropped"
        )
        assert sw.drops()["queue_packets"] > 0
        sent = loop.status(1).tx_packets
        assert sent >= 64
        numbers = [struct.unpack_from("!H", h1.receive(), 18)[0] for _ in range(sent)]
        assert numbers == sorted(set(numbers))


def test_the_port_rate_of_the_core_spaces_frames(net: Net) -> None:
    """100 frames of 1034 bytes at 10 Mbit/s take 82.72 ms at least."""
    h0, h1 = net.pair()
    config = SwitchConfig(port_rate_bps=10_000_000, queue_depth_packets=1000)
    with router({0: "p0", 1: "p1"}, config) as (_, loop):
        before = loop.now_ns()
        for i in range(100):
            h0.send(ipv4(i, 1000))
        assert list(range(100)) == [struct.unpack_from("!H", h1.receive(), 18)[0] for _ in range(100)]
        assert loop.now_ns() - before >= 99 * 1034 * 800


def test_a_port_without_carrier_drops_in_the_core(net: Net, wait: Wait) -> None:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    h0 = net.wire("h0")
    with router({0: "p0", 1: "p1"}) as (sw, loop):
        net.ip("link", "set", "dev", "h1", "down")
        wait(lambda: not loop.port_up(1), "no carrier")
        h0.send(ipv4(1, 100))
        wait(lambda: sw.drops().get("port_down", 0) + loop.status(1).tx_down == 1, "dropped by reason")


def test_a_program_can_be_replaced_while_frames_wait(net: Net, wait: Wait) -> None:
    """Buffers that wait for their time come back after the load, when the program has another size."""
    h0, h1 = net.pair(mtu=9000)
    programs = [program(name) for name in ("arithmetic_wide", "checksums", "cloning")]
    first = program("basic_l3")
    with router({0: "p0", 1: "p1"}, SwitchConfig(port_delay_ns=200_000_000)) as (sw, loop):
        for turn, other in enumerate(programs, start=1):
            for i in range(60):
                # What a small buffer just takes: with the headers of another program it would not fit.
                h0.send(ipv4(i, 2048 - 34))
            wait(partial(came, loop, turn * 120 - 60), "in the switch")
            sw.load(other)
            assert list(range(60)) == [struct.unpack_from("!H", h1.receive(), 18)[0] for _ in range(60)]
            for i in range(60):
                h0.send(ipv4(i, 2048 - 34))
            wait(partial(came, loop, turn * 120), "in the switch with another program")
            sw.load(first)
            add_route(sw)


def came(loop: IoLoop, frames: int) -> bool:
    return bool(loop.status(0).rx_packets == frames)


def test_digests_wake_the_control_plane(net: Net) -> None:
    net.veth("p0", "h0")
    h0 = net.wire("h0")
    sw = V1ModelSwitch(program("digests"), SwitchConfig())
    with IoLoop(sw, {0: "p0"}, library=io_library(SANITIZE)) as loop:
        loop.start()
        h0.send(b"\x02\0\0\0\0\x01\x02\0\0\0\0\x07\x08\0" + bytes(50))
        assert select.select([loop.events_fd], [], [], 30)[0]
        loop.packet_ins()
        assert sw.digests()
    sw.close()
