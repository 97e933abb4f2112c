# SPDX-License-Identifier: Apache-2.0
"""Queue accounts (common/queues.p4): at any time what the traffic manager holds, and nothing once all has left.

Random traffic with all that could leak: drops for every reason, control packets, packet-outs, ACKs made by clone and
recirculation, ACKs turned into pauses, ports that are slow.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.packet import Packet

from tailrace.codec.numbers import Opcode
from tests.p4src.frames import ack_of, roce, shim_of, shimmed
from tests.p4src.rig import (
    DOWNLINK,
    HOST,
    HOST_PORT,
    NEVER_TICKS,
    OTHER_HOST,
    OTHER_HOST_PORT,
    REMOTE,
    UPLINKS,
    Rig,
    number,
)

RATE_BPS = 8_000_000_000  # a byte a nanosecond
ALL_PORTS = (HOST_PORT, OTHER_HOST_PORT, DOWNLINK, *UPLINKS)
LIMIT_BYTES = 6000
FLOWS = 7

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["out", "out", "in", "local", "ack", "control", "ttl", "route", "forged", "question"]
        ),
        st.integers(0, FLOWS - 1),
        st.integers(0, 3000),
        st.integers(0, 4000),
    ),
    min_size=5,
    max_size=60,
)


@dataclass
class Traffic:
    """Frames for one switch; remembers what it sent, to make ACKs of it."""

    rig: Rig

    def __post_init__(self) -> None:
        self.unacknowledged: list[tuple[int, Packet, int]] = []  # port, data frame, ticks

    def frame(self, kind: str, flow: int, size: int) -> tuple[int, Packet | bytes] | None:
        """Port and frame of a step; None where there is nothing to send."""
        out = roce(flow, payload=bytes(size))
        if kind == "out":
            return HOST_PORT, out
        if kind == "in":
            stamps = [(1, 1)] * (flow % 7 + 1)
            data = roce(flow, src=REMOTE, dst=HOST, payload=bytes(size))
            return (DOWNLINK, *UPLINKS)[flow % 5], shimmed(data, 7, stamps)
        if kind == "local":
            return HOST_PORT, roce(flow, dst=OTHER_HOST, payload=bytes(size))
        if kind == "ack" and self.unacknowledged:
            port, data, ticks = self.unacknowledged.pop(flow % len(self.unacknowledged))
            return port, ack_of(data, 1, [(ticks, HOST_PORT)], congested=size % 2)
        if kind == "control":
            return HOST_PORT, roce(flow, opcode=int(Opcode.ACK), payload=bytes(4))
        if kind == "ttl":
            return HOST_PORT, roce(flow, ttl=1)
        if kind == "route":
            return HOST_PORT, roce(flow, dst="192.0.2.1")
        if kind == "forged":
            return HOST_PORT, ack_of(out, 1, [(1, 1)])
        if kind == "question":
            return self.rig.cpu_port, bytes([3, 0, flow])  # READ_PORT
        return None

    def sent(self, port: int, data: bytes) -> None:
        """A frame left; data with this switch's stamp can be acknowledged."""
        if port in UPLINKS and data[12:15] == b"\x88\xb5\x01":
            self.unacknowledged.append((port, original(data), shim_of(data).stack[0].ticks))


def original(data: bytes) -> Packet:
    """The data frame as its host sent it, as far as an ACK tells: its key and length."""
    shim = shim_of(data)
    flow = shim.payload["UDP"].sport
    size = len(data) - 4 - 6 * len(shim.stack) - len(roce(flow, payload=b""))
    return roce(flow, payload=bytes(size))


def waiting(rig: Rig, port: int) -> int:
    """Bytes in a port's queues, as the traffic manager counts them."""
    return sum(rig.switch.queue_depth(port, priority)[1] for priority in range(number("priority_queues")))


def play(rig: Rig, script: list[tuple[str, int, int, int]]) -> None:
    """Play the steps; the frames that leave may be acknowledged by later ones."""
    traffic, now = Traffic(rig), 0
    for kind, flow, size, pause_ns in script:
        now += pause_ns
        step = traffic.frame(kind, flow, size)
        outputs = rig.send(*step, now) if step else []
        for output in outputs:
            traffic.sent(output.port, output.data)
        if rig.name == "ecmp":
            assert [rig.load(port) for port in ALL_PORTS] == [waiting(rig, port) for port in ALL_PORTS]
        assert sum(rig.load(port) for port in ALL_PORTS) == sum(rig.source_load(port) for port in range(512))
        assert all(rig.load(port) <= LIMIT_BYTES or control_waits(rig, port) for port in ALL_PORTS)


def control_waits(rig: Rig, port: int) -> bool:
    """Whether something is in the queue that the limit does not hold for."""
    return rig.switch.queue_depth(port, number("priority_queues") - 1)[0] > 0


def expect_empty(rig: Rig) -> None:
    """Let everything leave; then nothing is charged to anyone."""
    rig.switch.run(1 << 50)
    rig.switch.outputs()
    assert [port for port in range(512) if rig.load(port) or rig.source_load(port)] == []


def set_up(rig: Rig) -> None:
    for port in ALL_PORTS:
        rig.switch.port_config(port, rate_bps=RATE_BPS)
    rig.default("queue_config", limit_bytes=LIMIT_BYTES)


@settings(max_examples=40)
@given(steps)
def test_accounts_are_the_queues(script):
    """In a program that changes no packet's length: by egress port, to the byte, after every packet."""
    with Rig("ecmp") as rig:
        set_up(rig)
        play(rig, script)
        expect_empty(rig)


@settings(max_examples=40)
@given(steps, st.sampled_from(["FULL", "INGRESS"]), st.sampled_from([1, NEVER_TICKS]))
def test_flowcut_leaks_nothing(script, mode, age_ticks):
    """With shims, ACKs by clone and recirculation, pauses, drains and a table of one bucket."""
    with Rig("flowcut") as rig:
        set_up(rig)
        rig.flowcut(mode, age_ticks=age_ticks)
        rig.drain(rtt_threshold=300)
        rig.credit(1)
        play(rig, script)
        expect_empty(rig)


def test_dropped_packets_are_charged_to_nobody():
    """Each reason by itself: nothing waits afterwards, by egress port or by ingress port."""
    with Rig("flowcut") as rig:
        rig.flowcut()
        rig.default("queue_config", limit_bytes=1)
        for kind in ("out", "ttl", "route", "forged"):
            port, frame = Traffic(rig).frame(kind, 1, 100) or (0, b"")
            assert rig.send(port, frame, 0) == []
        assert rig.drops() == {"QUEUE_LIMIT": 1, "TTL_EXPIRED": 1, "NO_ROUTE": 1, "CONTROL_FROM_HOST": 1}
        expect_empty(rig)


def test_an_ack_is_charged_with_its_own_length_and_to_no_link():
    """An ACK that waits is not its data packet: cut to its length, and what came in by that port owes nothing."""
    stamps = [(1, 1), (2, 2)]
    with Rig("flowcut") as rig:
        rig.flowcut()
        rig.switch.port_config(DOWNLINK, rate_bps=8)
        data = roce(src=REMOTE, dst=HOST, payload=bytes(1000))
        for _ in range(3):
            rig.send(DOWNLINK, shimmed(data, 2, stamps), 0)
        # The first is on the wire, two wait.
        ack_bytes = len(ack_of(data, 2, stamps))
        assert rig.load(DOWNLINK) == 2 * ack_bytes
        assert rig.source_load(number("mirror_port")) == 2 * ack_bytes
        assert rig.source_load(DOWNLINK) == 0
        expect_empty(rig)
