# SPDX-License-Identifier: Apache-2.0
"""One ACK for several packets: what it stands for, what it echoes, and that nothing waits for it in vain."""

from __future__ import annotations

import random
from collections import deque
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.calls import COUNT_SHIFT, KIND_BITS, NEVER, NIC_ACK
from tailrace.hosts.nic.nic_acks import NicAcks
from tailrace.hosts.nic.sender import FlowSender, min_rtt_of
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig, SteeringConfig
from tailrace.hosts.steering.flowcut import FlowcutSender, MinRtt
from tailrace.hosts.transport import make_receiver, make_sender
from tailrace.hosts.transport.base import SILENCE
from tailrace.hosts.transport.dctcp import DctcpSender
from tests.codec.frames import Ack, Data, Frame, NicAcked
from tests.hosts.marking import marked
from tests.hosts.network import VirtualNetwork, flow, make_nic
from tests.hosts.steering.fabric import Paths
from tests.hosts.trimming import trim

MTU, DELAY_NS, WIRE_NS = 1000, 40_000, 2_000
CHANCE = settings(max_examples=60)


def config(transport: str, every: int, **changes) -> NicConfig:
    settings_ = {"window_bytes": 64_000, "ack_delay_ns": DELAY_NS, "rto_ns": 1_000_000, **changes}
    return NicConfig(transport=transport, mtu_bytes=MTU, ack_every=every, **settings_)


def two(config_: NicConfig, fate=None) -> VirtualNetwork:
    network = VirtualNetwork([make_nic(number, config_) for number in (1, 2)])
    network.fate = fate or (lambda now_ns, frame, parsed: WIRE_NS)
    return network


def beyond(network: VirtualNetwork) -> int:
    """Arrivals of another packet than the expected one, or of that when later ones are here."""
    expected, count = 0, 0
    kept: set[int] = set()
    for arrival in network.arrivals:
        if isinstance(arrival.parsed, Data):
            count += arrival.parsed.psn != expected or len(kept) > expected
            kept.add(arrival.parsed.psn)
            while expected in kept:
                expected += 1
    return count


def asked(network: VirtualNetwork) -> int:
    return sum(isinstance(arrival.parsed, Data) and arrival.parsed.ackreq for arrival in network.arrivals)


@CHANCE
@given(
    transport=st.sampled_from(["sr", "dctcp"]),
    every=st.integers(2, 20),
    packets=st.integers(1, 120),
    window=st.integers(1, 60),
    jitter=st.sampled_from([0, 3_000, 30_000]),
    seed=st.integers(0, 1000),
)
def test_no_more_acks_than_packets_ask_for(transport, every, packets, window, jitter, seed):
    """One for `every` packets in order, and one for whatever else: out of order, asked for, the end, late ones."""
    rng = random.Random(seed)
    network = two(
        config(transport, every, window_bytes=window * MTU),
        lambda now_ns, frame, parsed: WIRE_NS + (rng.randint(0, jitter) if isinstance(parsed, Data) else 0),
    )
    network.add(flow(1, packets * MTU))
    network.run()
    acks = [arrival for arrival in network.arrivals if isinstance(arrival.parsed, Ack)]
    data = [arrival.now_ns for arrival in network.arrivals if isinstance(arrival.parsed, Data)]
    late = sum(arrival.now_ns - WIRE_NS not in {at + 62 for at in data} for arrival in acks)
    assert len(acks) <= -(-packets // every) + beyond(network) + asked(network) + late + 1
    assert not network.senders()[0].timeouts
    assert packets * MTU == network.receivers()[0].bytes
    if not jitter and window > 2 * every and transport == "dctcp":
        # nothing asks, nothing is late: exactly what the option says
        assert -(-packets // every) == len(acks)


def note_senders(network, senders: list[FlowSender]) -> None:
    senders.extend(network.nics[0]._senders.values())


def test_dctcp_counts_every_packet_and_mark_once():
    """Whatever the ACKs share, the window hears of the same packets and marks in the same order: it ends alike."""
    windows = {}
    for every in (1, 2, 4, 16):
        network = two(config("dctcp", every))
        network.change = lambda frame, parsed: (
            marked(frame) if isinstance(parsed, Data) and parsed.psn % 16 in (5, 6, 7, 11) else frame
        )
        network.add(flow(1, 64 * MTU))
        senders: list[FlowSender] = []
        network.at(1, partial(note_senders, network, senders))
        network.run()
        (sender,) = senders
        assert isinstance(sender.transport, DctcpSender)
        windows[every] = sender.transport.window.cwnd_bytes
        acks = sum(isinstance(arrival.parsed, Ack) for arrival in network.arrivals)
        assert acks == 64 if every == 1 else acks < 50
    assert {windows[1]} == set(windows.values())
    # 16 marks took half a packet each; 48 packets gave much less
    assert 56_000 < windows[1] < 60_000


def test_a_packet_with_another_mark_releases_the_ack():
    """RFC 8257 §3.2: each ACK has the one mark of all its packets, and the port of the last of them."""
    network = two(config("dctcp", 8))
    network.change = lambda frame, parsed: (
        marked(frame) if isinstance(parsed, Data) and 3 <= parsed.psn < 5 else frame
    )
    network.add(flow(1, 16 * MTU))
    network.run()
    acked = [
        (arrival.parsed.psn, arrival.parsed.becn)
        for arrival in network.arrivals
        if isinstance(arrival.parsed, Ack)
    ]
    assert [(2, False), (4, True), (12, False), (15, False)] == acked


def test_a_trimmed_packet_releases_the_ack():
    """A NACK says nothing of the packets before."""
    network = two(config("dctcp", 8))
    cut: list[Frame] = []

    def change(frame, parsed):
        if isinstance(parsed, Data) and parsed.psn == 2 and not cut:
            cut.append(frame)
            return Frame(trim(frame.data))
        return frame

    network.change = change
    network.add(flow(1, 4 * MTU))
    network.run()
    assert 1 == network.senders()[0].nacks
    # 0 and 1 before the NACK; 3 beyond it; 2, which ends the flow
    acked = [arrival.parsed.psn for arrival in network.arrivals if isinstance(arrival.parsed, Ack)]
    assert 4 == len(acked) and [1, 1] == acked[:2] and 3 == acked[-1]
    assert not network.senders()[0].timeouts


@pytest.mark.parametrize("window", [1, 3, 5])
def test_a_closed_window_asks(window):
    """A window below `ack_every` never waits for the delay."""
    network = two(config("dctcp", 16, window_bytes=window * MTU, ack_delay_ns=900_000))
    network.add(flow(1, 20 * MTU))
    network.run()
    end_ns = network.records()[0].end_ns
    assert end_ns is not None and end_ns < 400_000


@pytest.mark.parametrize("name", ["scout", "spray"])
def test_steering_hears_of_the_last_packet_of_each_ack(name):
    """Spritz §IV-C: an EV comes back for each ACK, not for each packet; so Spray has fewer paths to use again."""
    reused = {}
    for every in (1, 4):
        steering = SteeringConfig(name, 5, 1000)
        config_ = config("dctcp", every, steering=steering)
        network = Paths([WIRE_NS] * 9).network(config_)
        network.add(flow(1, 400 * MTU))
        network.run()
        ports = {data.psn: data.wire_sport for data in network.data_sent()}
        for arrival in network.arrivals:
            if isinstance(arrival.parsed, Ack):
                assert ports[arrival.parsed.psn] == arrival.parsed.sport
        reused[every] = network.senders()[0].reused
    assert reused[4] < reused[1] if name == "spray" else reused[4] > 0


def nic_config(every: int, **changes) -> NicConfig:
    flowcut_config = FlowcutNicConfig(rtt_threshold=1.3, min_left=0, age_ns=3_000_000, ns_per_byte=1.0)
    return config("gbn", every, flowcut_nic=flowcut_config, window_bytes=16_000, **changes)


@CHANCE
@given(
    every=st.integers(1, 20),
    sizes=st.lists(st.sampled_from([66, 500, 1066, 1082]), min_size=1, max_size=80),
    hops=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    gaps=st.lists(st.integers(0, 60_000), min_size=1, max_size=7),
    urgent=st.integers(1, 30),
)
def test_nic_acks_take_off_every_byte_once_and_in_time(every, sizes, hops, gaps, urgent):
    """Whatever comes when: nothing of it stays in flight, and nothing is held for longer than the delay."""
    config_ = nic_config(every)
    control: deque = deque()
    acks = NicAcks(config_, 5 << KIND_BITS | NIC_ACK, control)
    flowcut_config = config_.flowcut_nic
    assert flowcut_config is not None
    sender = FlowcutSender(flowcut_config, MinRtt(1.0), 10**9, 77, random.Random(1), held_ns=DELAY_NS)
    now_ns = 1_000
    for number, size in enumerate(sizes):
        sender.on_sent(now_ns, size)
        if acks.deadline_ns <= now_ns + 500:
            acks.on_time(acks.deadline_ns)
        acks.on_data(now_ns + 500, size, hops[number % len(hops)], now_ns, number % urgent == 0)
        assert acks.deadline_ns == NEVER or acks.deadline_ns <= now_ns + 500 + DELAY_NS
        assert NEVER != acks.deadline_ns or control
        now_ns += gaps[number % len(gaps)]
    if acks.deadline_ns != NEVER:
        acks.on_time(acks.deadline_ns)
    assert NEVER == acks.deadline_ns
    assert len(control) <= len(sizes)
    for _, count, ticks in control:
        sender.on_nic_ack(
            now_ns + 600 + DELAY_NS, data_bytes=count >> COUNT_SHIFT, hops=count & 255, ticks=ticks, left=0
        )
    assert 0 == sender.in_flight_bytes


def test_the_time_an_ack_was_held_is_no_round_trip_time():
    """Its stamp is moved on by it; of several full packets the length is that of one."""
    config_ = nic_config(4)
    control: deque = deque()
    acks = NicAcks(config_, 5 << KIND_BITS | NIC_ACK, control)
    full = MTU + 58 + 8
    for number in range(3):
        acks.on_data(2_000 + number, full, 2, 2**32 - 5 + number, False)
    acks.on_time(2_000 + DELAY_NS)
    assert [(5 << KIND_BITS | NIC_ACK, 3 * full << COUNT_SHIFT | 2, DELAY_NS - 2 - 3)] == list(control)
    rtts = min_rtt_of(config_)
    assert rtts is not None
    assert [1, 3, 1, 1] == [rtts.packets(count) for count in (full, 3 * full, full + 16, 90)]


def test_flowcut_nic_acks_are_fewer_and_drains_end():
    """Though the destination does not know that somebody waits: by the delay, well before age and timeout."""
    counts = {}
    for every in (1, 4):
        # the path is slow for a while, so that flows drain
        network = two(
            nic_config(every),
            lambda now_ns, frame, parsed: (
                90_000 if isinstance(parsed, Data) and 50_000 < now_ns < 250_000 else WIRE_NS
            ),
        )
        network.add(flow(1, 200 * MTU))
        network.run()
        counts[every] = sum(isinstance(arrival.parsed, NicAcked) for arrival in network.arrivals)
        sender, record = network.senders()[0], network.records()[0]
        assert sender.drains and sender.reroutes == sender.drains and not sender.pause_timeouts
        assert record.drained_ns < sender.drains * (90_000 + 16_000 + 2 * WIRE_NS + DELAY_NS)
        assert not network.receivers()[0].overtaken
    assert 200 == counts[1]
    assert counts[4] < 75


def test_dctcp_senders_know_when_to_ask():
    """The window closes, and all that is in flight may be held back."""
    sender = make_sender(50, config("dctcp", 4, window_bytes=6 * MTU), 7, random.Random(1))
    assert isinstance(sender, DctcpSender)
    asks = []
    while sender.peek() >= 0:
        asks.append(sender.asks_at(sender.peek()))
        sender.on_sent(0, sender.peek())
    assert [False] * 6 == asks
    sender = make_sender(50, config("dctcp", 4, window_bytes=3 * MTU), 7, random.Random(1))
    asks = []
    while sender.peek() >= 0:
        asks.append(sender.asks_at(sender.peek()))
        sender.on_sent(0, sender.peek())
    assert [False, False, True] == asks


@pytest.mark.parametrize("transport", ["gbn", "sr", "dctcp", "dcqcn"])
def test_a_held_ack_is_no_timeout(transport):
    """RFC 9002 §6.2.1: a timeout waits for as long as an ACK may be held back, too."""
    network = two(config(transport, 100, rto_ns=30_000, ack_delay_ns=80_000, flow_rate_bps=500_000_000))
    network.add(flow(1, 20 * MTU))
    network.run()
    assert 0 == network.senders()[0].timeouts
    assert 20 == network.senders()[0].packets
    assert sum(isinstance(arrival.parsed, Ack) for arrival in network.arrivals) < 10


@pytest.mark.parametrize("transport", ["sr", "tcp"])
def test_what_fills_a_gap_is_acknowledged_at_once(transport):
    """RFC 5681 §4.2: the sender waits for it."""
    receiver = make_receiver(9, config(transport, 8))
    answers = [receiver.on_data(0, index, False) for index in (0, 2, 1, 3, 5, 6, 4, 7)]
    assert [True, False, False, True, False, False, False, True] == [answer == SILENCE for answer in answers]
    assert (8, DELAY_NS) == (receiver.expected, receiver.deadline_ns)


def test_tcp_gathers_behind_the_nic():
    """Of ACKs between NICs there is one for each packet (Flowcut §III-A1), and marks release no ACK of tcp."""
    flowcut_config = FlowcutNicConfig(ns_per_byte=1.0)
    network = two(config("tcp", 4, flowcut_nic=flowcut_config, window_bytes=0, ack_delay_ns=900_000))
    network.change = lambda frame, parsed: (
        marked(frame) if isinstance(parsed, Data) and parsed.psn == 9 else frame
    )
    network.add(flow(1, 40 * MTU))
    network.run()
    assert 40 == sum(isinstance(arrival.parsed, NicAcked) for arrival in network.arrivals)
    acked = [
        (arrival.parsed.psn, arrival.parsed.becn)
        for arrival in network.arrivals
        if isinstance(arrival.parsed, Ack)
    ]
    assert [(3, False), (7, False), (11, True), (15, False)] == acked[:4]
