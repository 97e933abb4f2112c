"""Times of packets in real time: the machine's own, in the order in which things happen, at every switch."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.daemon.ports import IoLoop, io_library
from tests.switch.bmv2_builder import Builder, call, const, field, pack, unpack

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Net, Wire

SANITIZE = os.environ.get("ASAN") == "1"
STAMPS = [
    ("ingress_global_timestamp", 48),
    ("enq_timestamp", 32),
    ("egress_global_timestamp", 48),
    ("deq_timedelta", 32),
]
HOPS = 2
ADDRESSES = [("addresses", 96), ("type", 16)]
FIELDS = [(f"{name}{hop}", bits) for hop in range(HOPS) for name, bits in STAMPS]
HEAD = pack(ADDRESSES, [0x02_0000_0000_01_02_0000_0000_02, 0x88B5])
FRAMES = 20


class Stamps(NamedTuple):
    """Of one switch, in ns of its own clock."""

    ingress: int
    queued: int
    egress: int
    waited: int


@functools.cache
def stamping() -> SwitchProgram:
    """Sends to port 1, and writes the packet's times here into it, before those of the hops so far."""
    b = Builder(ADDRESSES, FIELDS)
    standard = "standard_metadata"
    b.run([call("assign", field(standard, "egress_spec"), const(1))])
    older = [call("assign", field("out", f"{name}1"), field("out", f"{name}0")) for name, _ in STAMPS]
    stamp = [call("assign", field("out", f"{name}0"), field(standard, name)) for name, _ in STAMPS]
    body = b.action("stamp", older + stamp)
    b.table("e", [], "exact", [body], default=(body, []), const_default=True, egress=True)
    return load_program(b.text(), sanitize=SANITIZE)


def frame(size: int = 100) -> bytes:
    return HEAD + bytes(size - len(HEAD))


def read(data: bytes) -> list[Stamps]:
    """The last hop's first."""
    values = unpack(FIELDS, data[len(HEAD) :])
    n = len(STAMPS)
    return [Stamps(*values[hop * n : (hop + 1) * n]) for hop in range(HOPS)]


def start(stack: ExitStack, ports: dict[int, str], **config: int) -> IoLoop:
    sw = stack.enter_context(V1ModelSwitch(stamping(), SwitchConfig(tick_ns=1, **config)))
    loop = stack.enter_context(IoLoop(sw, ports, library=io_library(SANITIZE)))
    loop.start()
    return loop


def in_order(s: Stamps) -> None:
    assert 0 < s.ingress <= s.egress
    # the time in the queue is of 32 bits, some seconds here
    assert s.queued == (s.egress - s.waited) % 2**32
    assert s.waited <= s.egress - s.ingress


def passed(sender: Wire, receiver: Wire) -> tuple[list[Stamps], int]:
    """A frame's times on its way, and how long that was, in ns, for those outside."""
    before = time.monotonic_ns()
    sender.send(frame())
    got = read(receiver.receive())
    return got, time.monotonic_ns() - before


def test_each_hop_takes_time_and_all_of_them_less_than_the_way(net: Net) -> None:
    for port, host in (("p0", "h0"), ("a", "b"), ("p1", "h1")):
        net.veth(port, host)
    h0, h1 = net.wire("h0"), net.wire("h1")
    with ExitStack() as stack:
        start(stack, {0: "p0", 1: "a"})
        start(stack, {0: "b", 1: "p1"})
        last = [0] * HOPS
        queued_ns = switched_ns = 0
        for _ in range(FRAMES):
            hops, way_ns = passed(h0, h1)
            for hop, s in enumerate(hops):
                in_order(s)
                assert s.ingress > last[hop]
                last[hop] = s.egress
                queued_ns += s.waited
            inside_ns = sum(s.egress - s.ingress for s in hops)
            assert 0 < inside_ns < way_ns
            switched_ns += inside_ns
        # nothing waits for a port, and yet it is not nothing
        assert 0 < queued_ns < switched_ns
        for _ in range(FRAMES):
            h0.send(frame())
        burst = [read(h1.receive()) for _ in range(FRAMES)]
    # no packet is older than what the one before it has left behind, in a register for example
    for hop in range(HOPS):
        times = [at for hops in burst for at in (hops[hop].ingress, hops[hop].egress)]
        assert times == sorted(times)


def test_who_waits_for_a_slow_port_is_told_how_long(net: Net) -> None:
    """1000 bytes at 1 Mbit/s take 8 ms, and a frame waits for all before it."""
    h0, h1 = net.pair()
    each_ns = 8_000_000
    with ExitStack() as stack:
        loop = start(stack, {0: "p0", 1: "p1"}, port_rate_bps=1_000_000)
        before_ns, before = loop.now_ns(), time.monotonic_ns()
        for _ in range(4):
            h0.send(frame(1000))
        got = [read(h1.receive())[0] for _ in range(4)]
        way_ns = time.monotonic_ns() - before
    for place, s in enumerate(got):
        in_order(s)
        assert s.egress >= before_ns + place * each_ns
        assert before_ns + place * each_ns - (s.egress - s.waited) <= s.waited < way_ns


def test_without_a_loop_times_are_those_that_the_caller_gives(net: Net) -> None:
    """Also after there was one."""
    net.veth("p0", "h0")
    net.veth("p1", "h1")

    def stamps_of(sw: V1ModelSwitch, at_ns: int) -> list[Stamps]:
        sw.inject(0, frame(), at_ns)
        sw.inject(0, frame(), at_ns + 10)
        sw.run(at_ns + 10_000)
        return [read(o.data)[0] for o in sw.outputs()]

    config = SwitchConfig(tick_ns=1, port_rate_bps=8_000_000_000)
    with V1ModelSwitch(stamping(), config) as sw:
        assert stamps_of(sw, 500) == [Stamps(500, 500, 500, 0), Stamps(510, 510, 600, 90)]
        with IoLoop(sw, {0: "p0", 1: "p1"}, library=io_library(SANITIZE)):
            for s in stamps_of(sw, 100_000):
                in_order(s)
                assert s.ingress not in (100_000, 100_010)
        late = 1 << 40
        assert stamps_of(sw, late)[0] == Stamps(late, late % 2**32, late, 0)
