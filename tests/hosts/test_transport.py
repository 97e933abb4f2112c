# SPDX-License-Identifier: Apache-2.0
"""Transports over wires that lose, delay and reorder, in virtual time."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.calls import NEVER
from tailrace.codec.numbers import Syndrome
from tailrace.hosts.options.dcqcn import DcqcnConfig
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport import make_receiver
from tailrace.hosts.transport.base import ACK, NAK, SILENCE
from tests.codec.frames import Ack, Data
from tests.hosts.marking import marked
from tests.hosts.network import VirtualNetwork, flow, make_nic

ALL = ("gbn", "sr", "mp-rdma", "dctcp", "dcqcn")
TRANSPORTS = st.sampled_from(["gbn", "sr"])
PROPERTY = settings(max_examples=40)


def two_nics(config: NicConfig, fate=None) -> VirtualNetwork:
    network = VirtualNetwork([make_nic(1, config), make_nic(2, config)])
    if fate is not None:
        network.fate = fate
    return network


def unruly(seed: int, loss: float, jitter_ns: int):
    """Loses and delays everything, by chance."""
    rng = random.Random(seed)
    return lambda now_ns, frame, parsed: None if rng.random() < loss else 1000 + rng.randint(0, jitter_ns)


@PROPERTY
@given(
    transport=st.sampled_from(ALL),
    lengths=st.lists(st.integers(1, 40_000), min_size=1, max_size=3),
    mtu=st.integers(60, 1500),
    window=st.integers(1, 20_000),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    jitter=st.sampled_from([0, 300, 20_000]),
    ack_every=st.integers(1, 5),
    reorder=st.integers(1, 20),
    bitmap=st.integers(1, 64),
    first_psn=st.sampled_from([0, 2**24 - 3, 2**23 - 2]),
    virtual=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_flow_completes_with_exactly_its_bytes(
    transport, lengths, mtu, window, loss, jitter, ack_every, reorder, bitmap, first_psn, virtual, seed
):
    """Under any loss and reordering, whatever the settings, and across the wrap of PSNs."""
    config = NicConfig(
        transport=transport,
        mtu_bytes=mtu,
        window_bytes=window,
        ack_every=1 if transport == "mp-rdma" else ack_every,
        ack_delay_ns=5_000,
        rto_ns=100_000,
        rto_backoff=2,
        reorder_packets=reorder,
        bitmap_packets=bitmap,
        first_psn=first_psn,
        virtual_payload=virtual,
    )
    network = two_nics(config, unruly(seed, loss, jitter))
    flows = [
        flow(number, length, src=1 + number % 2, dst=2 - number % 2) for number, length in enumerate(lengths)
    ]
    network.add(*flows)
    network.run()

    assert all(nic.idle for nic in network.nics)
    assert all(not nic.counters for nic in network.nics)
    assert {spec.id: spec.bytes for spec in flows} == {
        seen.flow.id: seen.bytes for seen in network.receivers()
    }
    assert all(seen.done for seen in network.senders())
    for record in network.records():
        assert record.end_ns is not None and record.end_ns >= record.start_ns
        assert record.received <= record.packets
        assert record.packets - record.retransmitted == -(-record.bytes // mtu)
    if not loss and not jitter:
        assert [(0, 0)] * len(flows) == [
            (record.retransmitted, record.out_of_order) for record in network.records()
        ]
        assert not any(seen.timeouts for seen in network.senders())


@PROPERTY
@given(
    transport=TRANSPORTS,
    loss=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 100),
    window=st.integers(1, 9000),
)
def test_the_window_is_kept(transport, loss, seed, window):
    """Payload between the first unacknowledged and the last sent byte never exceeds the window, or one packet."""
    config = NicConfig(transport=transport, window_bytes=window, mtu_bytes=1000, rto_ns=100_000)
    network = two_nics(config, unruly(seed, loss, 500))
    network.add(flow(1, 30_000))
    network.run()
    events = [(arrival.now_ns, 1, arrival.parsed) for arrival in network.sent]
    events += [
        (arrival.now_ns, 0, arrival.parsed) for arrival in network.arrivals if isinstance(arrival.parsed, Ack)
    ]
    acked = 0
    for _, _, parsed in sorted(events, key=lambda event: event[:2]):
        if isinstance(parsed, Data):
            assert parsed.psn - acked < max(1, window // 1000)
        elif isinstance(parsed, Ack):
            acked = max(acked, parsed.psn + (parsed.syndrome != Syndrome.NAK_SEQUENCE))


def test_go_back_n_says_nak_once_and_sends_again_from_the_missing_packet():
    """One loss: one NAK with its PSN, and everything after it goes a second time."""
    lost: list[Data] = []

    def fate(now_ns, frame, parsed):
        if isinstance(parsed, Data) and parsed.psn == 4 and not lost:
            lost.append(parsed)
            return None
        return 2_000

    network = two_nics(NicConfig(mtu_bytes=1000, window_bytes=100_000), fate)
    network.add(flow(1, 12_000))
    network.run()
    naks = [arrival.parsed for arrival in network.arrivals if isinstance(arrival.parsed, Ack)]
    assert [4] == [nak.psn for nak in naks if nak.syndrome == Syndrome.NAK_SEQUENCE]
    again = [data.psn for data in network.data_sent() if data.retransmission]
    assert again == list(range(4, 4 + len(again)))
    assert len(again) > 1
    assert 0 == network.senders()[0].timeouts
    assert (0, 0) == (network.receivers()[0].out_of_order, network.receivers()[0].overtaken)
    assert network.receivers()[0].out_of_sequence > 0


def test_selective_repeat_sends_again_only_what_is_missing():
    """Three losses: three retransmissions."""
    lost = set()

    def fate(now_ns, frame, parsed):
        if isinstance(parsed, Data) and parsed.psn in (2, 4, 7) and parsed.psn not in lost:
            lost.add(parsed.psn)
            return None
        return 2_000

    network = two_nics(
        NicConfig(transport="sr", mtu_bytes=1000, window_bytes=100_000, reorder_packets=3), fate
    )
    network.add(flow(1, 40_000))
    network.run()
    assert [2, 4, 7] == [data.psn for data in network.data_sent() if data.retransmission]
    assert 0 == network.senders()[0].timeouts


def test_selective_repeat_keeps_calm_about_reordering():
    """Less reordering than reorder_packets makes no retransmission, and the order observer sees it all."""
    network = two_nics(
        NicConfig(transport="sr", mtu_bytes=1000, window_bytes=100_000, reorder_packets=30, rto_ns=10**8),
        unruly(1, 0.0, 10_000),
    )
    network.add(flow(1, 200_000))
    network.run()
    record = network.records()[0]
    assert record.retransmitted == 0
    assert record.out_of_order > 20
    assert 0 < record.ood_max < 30


def test_the_last_packet_s_loss_is_found_by_timeout():
    """Nothing comes after it that could show the gap."""
    dropped: list[int] = []

    def fate(now_ns, frame, parsed):
        if isinstance(parsed, Data) and parsed.psn == 2 and not dropped:
            dropped.append(now_ns)
            return None
        return 2_000

    network = two_nics(NicConfig(mtu_bytes=1000, rto_ns=777_000), fate)
    network.add(flow(1, 3_000))
    network.run()
    again = [arrival.now_ns for arrival in network.sent if getattr(arrival.parsed, "retransmission", False)]
    acks = [a.now_ns for a in network.arrivals if isinstance(a.parsed, Ack) and a.now_ns < again[0]]
    assert [acks[-1] + 777_000] == again
    assert 1 == network.senders()[0].timeouts


@pytest.mark.parametrize("transport", ["gbn", "sr"])
def test_a_held_back_acknowledgment_goes_out_in_time(transport):
    """Receivers do not wait for packets that never come."""
    receiver = make_receiver(9, NicConfig(transport=transport, ack_every=4, ack_delay_ns=50))
    assert SILENCE == receiver.on_data(100, 0, False)
    assert 150 == receiver.deadline_ns
    assert SILENCE == receiver.on_time(149)
    assert (ACK, 1) == (receiver.on_time(150), receiver.expected)
    assert NEVER == receiver.deadline_ns


def test_pacing_keeps_the_flow_s_rate():
    """Packets of a paced flow leave no faster than its rate, though the link is."""
    network = two_nics(NicConfig(mtu_bytes=1000, flow_rate_bps=800_000_000))
    network.add(flow(1, 20_000))
    network.run()
    times = [arrival.now_ns for arrival in network.sent if isinstance(arrival.parsed, Data)]
    # 1000 bytes and 58 of headers, at 10 ns a byte; the first packet has 16 bytes more
    assert [10_740] + [10_580] * 18 == [later - earlier for earlier, later in itertools.pairwise(times)]


def marking(psns: set[int]):
    """Sets CE on the first transmission of these packets."""

    def change(frame, parsed):
        if not isinstance(parsed, Data) or parsed.retransmission or parsed.psn not in psns:
            return frame
        return marked(frame)

    return change


def answers(network: VirtualNetwork) -> list[Ack]:
    return [arrival.parsed for arrival in network.arrivals if isinstance(arrival.parsed, Ack)]


@pytest.mark.parametrize("transport", ALL)
def test_acknowledgments_echo_port_and_mark_of_their_packets(transport):
    """One answer for each packet: it has the packet's source port, and BECN if the packet had CE."""
    network = two_nics(NicConfig(transport=transport, mtu_bytes=1000, window_bytes=4_000))
    network.change = marking({2, 3, 7})
    network.add(flow(1, 12_000))
    network.run()
    ports = [data.wire_sport for data in network.data_sent()]
    assert ports == [ack.sport for ack in answers(network)]
    assert [2, 3, 7] == [number for number, ack in enumerate(answers(network)) if ack.becn]
    assert 3 == network.records()[0].ce_marked


def test_a_coalesced_acknowledgment_echoes_any_mark_since_the_last_one():
    """No mark is lost, and none is told twice."""
    network = two_nics(NicConfig(mtu_bytes=1000, window_bytes=100_000, ack_every=4))
    network.change = marking({1, 6, 7})
    network.add(flow(1, 16_000))
    network.run()
    assert [(3, True), (7, True), (11, False), (15, False)] == [
        (ack.psn, ack.becn) for ack in answers(network)
    ]


@pytest.mark.parametrize("transport", ["gbn", "dcqcn"])
def test_naks_are_repeated_when_asked_for(transport):
    """With the first packet out of order after the time; what comes in order ends it, and the next gap begins anew."""
    receiver = make_receiver(20, NicConfig(transport=transport, nak_every_ns=100))
    story = [
        *((0, 0, ACK), (10, 2, NAK), (60, 3, SILENCE), (109, 4, SILENCE), (110, 5, NAK), (150, 6, SILENCE)),
        *((400, 7, NAK), (410, 0, ACK), (499, 8, SILENCE), (500, 8, NAK), (510, 1, ACK), (511, 3, NAK)),
    ]
    assert [receiver.on_data(now_ns, index, False) for now_ns, index, _ in story] == [
        each for *_, each in story
    ]
    once = make_receiver(20, NicConfig(transport=transport))
    assert [once.on_data(now_ns, 5, False) for now_ns in range(0, 10_000, 100)] == [NAK, *[SILENCE] * 99]


@PROPERTY
@given(
    nak_every_ns=st.sampled_from([0, 1, 500, 5000]),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    jitter=st.sampled_from([0, 20_000]),
    nak_cnp=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_flow_completes_whatever_is_repeated(nak_every_ns, loss, jitter, nak_cnp, seed):
    """And each NAK brings a CNP where that is asked for, though nothing is marked."""
    dcqcn = DcqcnConfig(nak_cnp=nak_cnp)
    config = NicConfig(
        transport="dcqcn", mtu_bytes=1000, window_bytes=0, nak_every_ns=nak_every_ns, dcqcn=dcqcn
    )
    network = two_nics(config, unruly(seed, loss, jitter))
    network.add(flow(1, 40_000))
    network.run()
    (record,) = network.records()
    assert record.bytes == 40_000
    answered = [arrival.parsed for arrival in network.sent if isinstance(arrival.parsed, Ack)]
    naks = sum(ack.syndrome == Syndrome.NAK_SEQUENCE for ack in answered)
    assert record.cnps_sent == (naks if nak_cnp else 0)


def test_an_answer_that_is_not_given_leaves_the_mark_for_the_next_one():
    """Go-back-N is silent after its NAK."""
    receiver_nic = make_nic(2, NicConfig(mtu_bytes=1000))
    receiver_nic.expect_flow(flow(1, 9_000))
    peer = receiver_nic.address - 1 << 24 | 101
    marks = []
    # packets 1 and 2 before 0; 2, which is marked, is not answered
    for psn, mark in ((1, 0), (2, 1), (0, 0), (1, 0)):
        opcode = 0x06 if psn == 0 else 0x07
        receiver_nic.on_data(0, peer, psn | 7 << 24, 1000 | opcode << 16 | mark << 38 | 1 << 40, -1)
        packet = receiver_nic.next_packet(0)
        psn_fields = packet[1] if isinstance(packet, tuple) else None
        marks.append(psn_fields >> 40 if isinstance(psn_fields, int) else None)
    assert [0, None, 1, 0] == marks


def test_records_count_timeouts_and_overtaking():
    """What the two ends have seen is in the record."""
    network = two_nics(
        NicConfig(transport="sr", mtu_bytes=1000, rto_ns=50_000, reorder_packets=1000), unruly(3, 0.05, 9_000)
    )
    network.add(flow(1, 90_000))
    network.run()
    (record,), (sent,), (received,) = network.records(), network.senders(), network.receivers()
    assert (sent.timeouts, received.overtaken, 0) == (record.timeouts, record.overtaken, record.ce_marked)
    assert record.timeouts > 0
    assert record.overtaken > 0
