# SPDX-License-Identifier: Apache-2.0
"""Packet calls: a NIC decides the same by numbers as by frames, and means what it says about its next packet."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.codec import calls
from tailrace.codec.layers.bth import BTH
from tailrace.codec.nic import port
from tailrace.codec.numbers import Opcode, PauseOp
from tailrace.codec.templates import HostAddress, data_headers, ip_number
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tests.codec.frames import build
from tests.hosts.by_packets import ByPackets, Numbers
from tests.hosts.network import VirtualNetwork, flow, make_nic

SETTINGS = st.fixed_dictionaries(
    {
        "transport": st.sampled_from(["gbn", "sr", "mp-rdma", "dctcp", "dcqcn"]),
        "mtu_bytes": st.integers(60, 1500),
        "window_bytes": st.integers(1, 20_000),
        "ack_every": st.integers(1, 4),
        "first_psn": st.sampled_from([0, 2**24 - 3]),
        "virtual_payload": st.booleans(),
        "flow_rate_bps": st.sampled_from([0, 2_000_000_000]),
        "flowcut_nic": st.sampled_from(
            [None, FlowcutNicConfig(rtt_threshold=1.2, min_left=0, age_ns=3_000_000, ns_per_byte=1.0)]
        ),
    }
).filter(lambda nic: nic["transport"] != "mp-rdma" or (nic["flowcut_nic"] is None and nic["ack_every"] == 1))


class PacketNetwork(VirtualNetwork):
    """Delivers the packets themselves."""

    def _depart(self, nic: Any) -> Any:
        sent = super()._depart(nic)
        if isinstance(sent, tuple):
            nic.note(self.now_ns, sent)
        return sent

    def _deliver(self, nic: Any, frame: Any, parsed: Any) -> None:
        nic.on_packet_of(self.now_ns, frame)


def unruly(seed: int, loss: float, jitter_ns: int):
    rng = random.Random(seed)
    return lambda now_ns, frame, parsed: None if rng.random() < loss else 1000 + rng.randint(0, jitter_ns)


def story(network: VirtualNetwork) -> list[tuple[int, str, bytes, int]]:
    return [
        (sending.now_ns, sending.nic.ip, sending.frame.data, sending.frame.virtual_bytes)
        for sending in network.sent
    ]


def run(network: VirtualNetwork, lengths: list[int], fate: Any) -> None:
    network.fate = fate
    for number, length in enumerate(lengths):
        after = (number - 1,) if number % 3 == 2 else ()
        spec = flow(number, length, src=1 + number % 2, dst=2 - number % 2, start_ns=number * 700)
        network.add(replace(spec, after=after))
    network.run()


@settings(max_examples=60)
@given(
    changes=SETTINGS,
    lengths=st.lists(st.integers(1, 30_000), min_size=1, max_size=4),
    loss=st.sampled_from([0.0, 0.05]),
    jitter=st.sampled_from([0, 300, 20_000]),
    seed=st.integers(0, 1000),
    polls=st.lists(st.integers(0, 400_000), max_size=30),
)
def test_numbers_and_frames_are_the_same(changes, lengths, loss, jitter, seed, polls):
    """The same packets at the same times, and the same records; also if a NIC is asked more often than needed."""
    config = NicConfig(ack_delay_ns=5_000, rto_ns=100_000, rto_backoff=2, reorder_packets=8, **changes)
    by_frames = VirtualNetwork([make_nic(1, config), make_nic(2, config)])
    run(by_frames, lengths, unruly(seed, loss, jitter))
    numbers = Numbers()
    wrapped: Any = [ByPackets(make_nic(number, config), numbers) for number in (1, 2)]
    by_packets = PacketNetwork(wrapped)
    for time_ns in polls:
        by_packets.at(time_ns, lambda: None)
    run(by_packets, lengths, unruly(seed, loss, jitter))
    assert story(by_frames) == story(by_packets)
    assert by_frames.records() == Nic.merge(*[wrapper.nic for wrapper in wrapped])
    assert all(nic.idle for nic in wrapped)


class Heard:
    """Notes calls."""

    address = (10 << 24) + 2

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str):
        if name == "on_frame":
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, arguments))


def heard(frame: bytes, virtual_bytes: int) -> list[tuple[str, tuple[Any, ...]]]:
    heard = Heard()
    listener: Any = heard
    port(listener).arrive(5, frame, virtual_bytes)
    return heard.calls


HERE = HostAddress("02:00:0a:00:00:01", "02:00:00:00:00:fe", "10.0.0.1", "10.0.0.2")


def test_a_data_packet_by_numbers():
    """Every field where the description says it is."""
    headers = data_headers(HERE, sport=4660, qpn=0x123456, ecn=True, shimmed=False)
    data_fields = 1001 | 0x06 << 16 | 93 << 24 | 1 << 39 | 1 << 40
    frame = build((9, 0xABCDEF | 4660 << 24, data_fields), (headers, bytes(16)), 77)
    assert (54 + 16 + 4, 1004) == (len(frame.data), frame.virtual_bytes)
    data = bytearray(frame.data)
    data[15] |= 3  # CE
    data[22] -= 5  # five hops
    checksum = sum(
        int.from_bytes(data[place : place + 2], "big") for place in range(14, 34, 2) if place != 24
    )
    data[24:26] = (0xFFFF - (checksum % 0xFFFF or 0xFFFF)).to_bytes(2, "big")
    data[46] = 42  # path tag
    expected = 1001 | 0x06 << 16 | 5 << 24 | 42 << 32 | 1 << 38 | 1 << 39 | 1 << 40 | (74 + 1004) << 41
    peer = (10 << 24) + 1 << 24 | 0x123456
    assert [("on_data", (5, peer, 0xABCDEF | 4660 << 24, expected, -1))] == heard(bytes(data), 1004)
    assert 93 == data[50] & 0x7F


def test_all_numbers_stay_small():
    """Below 2^62 with every field at its greatest: compiled code holds them in a register."""
    data_fields = (2**17 - 1) << calls.FRAME_SHIFT | (1 << calls.FRAME_SHIFT) - 1
    peer = 0xFFFFFFFF << calls.QPN_BITS | calls.QPN_MASK
    psn_fields = 1 << calls.BECN_SHIFT | (1 << calls.BECN_SHIFT) - 1
    assert max(data_fields, peer, psn_fields, calls.NEVER) < 2**62


def test_templates_are_headers_of_one_handle():
    """Handles are dense in the order in which ends are there; a wrong one is an error."""
    nic = make_nic(1, NicConfig())
    nic.add_flow(flow(1, 5_000))
    with pytest.raises(IndexError):
        nic.template(0 << calls.KIND_BITS | calls.PAYLOAD)
    nic.next_packet(0)
    spec = flow(2, 5_000, src=2, dst=1)
    nic.expect_flow(spec)
    nic.on_trimmed(0, ip_number(spec.src) << calls.QPN_BITS | spec.qpn, 0, 0)
    headers, reth = nic.template(0 << calls.KIND_BITS | calls.PAYLOAD)
    assert (54, 16, 5_000) == (len(headers), len(reth), int.from_bytes(reth[-4:], "big"))
    acks, nothing = nic.template(1 << calls.KIND_BITS | calls.ACK)
    assert (54, b"", int(Opcode.ACK)) == (len(acks), nothing, BTH(acks[42:] + bytes(4)).opcode)
    nic_acks, nothing = nic.template(1 << calls.KIND_BITS | calls.NIC_ACK)
    assert (54, b"") == (len(nic_acks), nothing)
    with pytest.raises(IndexError):
        nic.template(2 << calls.KIND_BITS | calls.ACK)


def test_a_quiet_nic_says_until_when():
    """The start of a flow, then what keeps it; None: for ever."""
    nic = make_nic(1, NicConfig())
    assert nic.next_packet(0) is None
    nic.add_flow(flow(1, 5_000, start_ns=700))
    assert 700 == nic.next_packet(0)
    nic.on_pfc(600, (40, -1, -1, -1, -1, -1, -1, -1))
    # 40 quanta of 512 bits at 10 Gb/s
    assert 600 + 2048 == nic.next_packet(700)
    assert isinstance(nic.next_packet(2648), tuple)


@pytest.mark.parametrize("op", list(PauseOp))
def test_calls_without_a_flow_are_counted(op):
    """Nothing raises."""
    nic = make_nic(1, NicConfig())
    nic.on_data(0, 5, 0, 0, -1)
    nic.on_ack(0, 5, 0, 0)
    nic.on_cnp(0, 5)
    nic.on_nic_ack(0, 5, 0, 0)
    nic.on_flow_pause(0, 1, 2, 3, 4, 5, int(op), 0)
    for reason in range(len(calls.DISCARD_REASONS)):
        nic.on_discard(0, reason)
    assert {"unexpected": 5} | dict.fromkeys(calls.DISCARD_REASONS, 1) == dict(nic.counters)
