# SPDX-License-Identifier: Apache-2.0
"""MP-RDMA: its window, its clocking by acknowledgments, its limit of disorder, and whole flows on many paths."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.options.nic import MpRdmaNicConfig, NicConfig
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE
from tailrace.hosts.transport.mp_rdma import MpRdmaReceiver, MpRdmaSender
from tests.codec.frames import Data
from tests.hosts.network import flow
from tests.hosts.steering.fabric import Paths


def config(window: int = 4, *, delta: int = 32, probe: float = 0.0, **changes: Any) -> NicConfig:
    return NicConfig(
        transport="mp-rdma",
        mtu_bytes=1000,
        mp_rdma=MpRdmaNicConfig(1000 * window, delta, probe),
        **changes,
    )


def sender(packets: int = 1000, window: int = 4, **changes: Any) -> MpRdmaSender:
    return MpRdmaSender(packets, config(window, **changes), 4000, random.Random(1))


def send_all(mp_rdma: MpRdmaSender, now_ns: int = 0) -> list[tuple[int, int]]:
    """Sends as much as may be sent: (packet, source port)."""
    sent = []
    while (index := mp_rdma.peek()) != NOTHING:
        sent.append((index, mp_rdma.sport))
        mp_rdma.on_sent(now_ns, index)
    return sent


def acknowledge(mp_rdma: MpRdmaSender, expected: int, arrived: int, sport: int, marked: bool = False) -> None:
    mp_rdma.on_response(0, False, expected, arrived)
    mp_rdma.on_echo(arrived, sport, marked)


def test_a_flow_begins_on_as_many_random_ports_as_its_window_has_packets():
    """Each packet on its own."""
    sent = send_all(sender(window=40))
    assert list(range(40)) == [index for index, _ in sent]
    ports = [port for _, port in sent]
    assert all(FIRST_PORT <= port <= LAST_PORT for port in ports)
    assert len(set(ports)) > 30


def test_an_acknowledgment_lets_the_next_packet_take_its_path():
    """The port that it echoes; nobody else's."""
    mp_rdma = sender()
    send_all(mp_rdma)
    acknowledge(mp_rdma, 1, 0, 50_001)
    assert [(4, 50_001)] == send_all(mp_rdma)
    acknowledge(mp_rdma, 1, 3, 50_002)
    assert [(5, 50_002)] == send_all(mp_rdma)


def test_the_window_grows_by_one_packet_a_round():
    """+1/cwnd for each acknowledgment; the second packet goes on the path of the one that made the room."""
    mp_rdma = sender()
    send_all(mp_rdma)
    windows = [mp_rdma.cwnd]
    sent = []
    for index in range(8):
        acknowledge(mp_rdma, index + 1, index, 50_000 + index)
        sent.append(len(send_all(mp_rdma)))
        windows.append(mp_rdma.cwnd)
    for before, after in itertools.pairwise(windows):
        assert after == pytest.approx(before + 1 / before)
    assert sum(sent) == 8 + int(mp_rdma.cwnd) - 4
    assert max(sent) == 2


def test_two_marks_take_one_packet():
    """-1/2 for each; below one packet the window does not fall."""
    mp_rdma = sender(window=4)
    send_all(mp_rdma)
    acknowledge(mp_rdma, 1, 0, 50_000, marked=True)
    assert mp_rdma.cwnd == 3.5
    assert not send_all(mp_rdma)
    acknowledge(mp_rdma, 2, 1, 50_000, marked=True)
    assert (mp_rdma.cwnd, mp_rdma.in_flight) == (3.0, 2)
    assert 1 == len(send_all(mp_rdma))
    for index in range(2, 12):
        acknowledge(mp_rdma, index + 1, index, 50_000, marked=True)
        send_all(mp_rdma)
    assert mp_rdma.cwnd == 1.0


def test_a_path_that_is_too_slow_gets_no_packet():
    """An acknowledgment of a packet more than delta below the highest one takes 1 off the window."""
    mp_rdma = sender(window=20, delta=5)
    send_all(mp_rdma)
    acknowledge(mp_rdma, 0, 15, 50_001)
    assert 1 == len(send_all(mp_rdma))
    before = mp_rdma.cwnd
    acknowledge(mp_rdma, 0, 10, 50_002)  # 5 below: not too slow
    assert mp_rdma.cwnd == pytest.approx(before + 1 / before)
    assert [50_002] == [port for _, port in send_all(mp_rdma)]
    before = mp_rdma.cwnd
    acknowledge(mp_rdma, 0, 9, 50_003)
    assert mp_rdma.cwnd == pytest.approx(before + 1 / before - 1)
    assert not send_all(mp_rdma)


def test_some_packets_try_new_paths():
    """Their share is `probe`."""
    mp_rdma = sender(packets=5000, window=1, probe=0.1, bitmap_packets=1)
    send_all(mp_rdma)
    new = 0
    for index in range(4000):
        acknowledge(mp_rdma, index + 1, index, 7)
        ((_, port),) = send_all(mp_rdma)
        new += port != 7
    assert 320 < new < 480


def test_acknowledgments_that_were_overtaken_count_for_their_packets():
    """The later one had told that more is in order; the packet of the earlier one is in flight no more."""
    mp_rdma = sender(window=6)
    send_all(mp_rdma)
    acknowledge(mp_rdma, 2, 1, 50_000)
    assert (4, 2) == (mp_rdma.in_flight, mp_rdma.acked)
    acknowledge(mp_rdma, 1, 4, 50_001)
    assert (3, 2) == (mp_rdma.in_flight, mp_rdma.acked)
    acknowledge(mp_rdma, 1, 4, 50_001)
    assert (3, 2) == (mp_rdma.in_flight, mp_rdma.acked)


def test_nonsense_changes_nothing():
    """Packets that were never sent."""
    mp_rdma = sender()
    send_all(mp_rdma)
    before = mp_rdma.cwnd, mp_rdma.acked, mp_rdma.in_flight
    acknowledge(mp_rdma, 9, 8, 50_000)
    acknowledge(mp_rdma, 0, -1, 50_000)
    assert before == (mp_rdma.cwnd, mp_rdma.acked, mp_rdma.in_flight)
    assert not send_all(mp_rdma)


def test_a_loss_is_sent_again_on_a_path_that_delivers():
    """When a packet `reorder_packets` later has arrived."""
    mp_rdma = sender(window=10, reorder_packets=3)
    send_all(mp_rdma)
    for arrived in (1, 2):
        acknowledge(mp_rdma, 0, arrived, 50_000)
        assert all(index >= 10 for index, _ in send_all(mp_rdma))
    acknowledge(mp_rdma, 0, 3, 50_009)
    again = send_all(mp_rdma)
    assert (0, 50_009) in again


def test_a_timeout_halves_the_window_and_takes_new_paths():
    """Everything that is outstanding goes again, as fast as the window lets it."""
    mp_rdma = sender(window=8, rto_ns=1000)
    sent = send_all(mp_rdma)
    mp_rdma.on_time(1000)
    assert (1, 4.0, 0) == (mp_rdma.timeouts, mp_rdma.cwnd, mp_rdma.in_flight)
    again = send_all(mp_rdma, 1000)
    assert [0, 1, 2, 3] == [index for index, _ in again]
    assert not {port for _, port in again} & {port for _, port in sent}


def test_the_bitmap_bounds_what_is_outstanding():
    """However large the congestion window."""
    mp_rdma = sender(window=50, bitmap_packets=5)
    assert 5 == len(send_all(mp_rdma))
    for arrived in (1, 2, 3, 4):
        acknowledge(mp_rdma, 0, arrived, 50_000)
        assert not send_all(mp_rdma)
    acknowledge(mp_rdma, 5, 0, 50_000)
    assert mp_rdma.cwnd <= 5
    assert 5 == len(send_all(mp_rdma))


def test_the_receiver_acknowledges_every_packet_at_once():
    """In order or not; beyond its bitmap nothing is taken."""
    receiver = MpRdmaReceiver(99, config(bitmap_packets=4))
    answers = []
    for index in (2, 1, 1, 0, 7, 8, 3):
        answer = receiver.on_data(0, index, False)
        answers.append((answer, receiver.arrived, receiver.expected))
    assert [
        (ACK, 2, 0),
        (ACK, 1, 0),
        (ACK, 1, 0),
        (ACK, 0, 3),
        (ACK, 7, 3),
        (SILENCE, 8, 3),
        (ACK, 3, 4),
    ] == answers
    assert 5 == receiver.received


@settings(max_examples=40)
@given(
    delays=st.lists(st.integers(500, 40_000), min_size=1, max_size=5),
    loss=st.sampled_from([0.0, 0.03, 0.2]),
    marks=st.sampled_from([0.0, 0.3, 1.0]),
    window=st.integers(1, 60),
    delta=st.integers(1, 40),
    probe=st.sampled_from([0.0, 0.01, 1.0]),
    bitmap=st.sampled_from([1, 7, 64, 4096]),
    first_psn=st.sampled_from([0, 2**24 - 30]),
    seed=st.integers(0, 100),
)
def test_every_flow_completes_with_exactly_its_bytes(
    delays, loss, marks, window, delta, probe, bitmap, first_psn, seed
):
    """On any paths, and the records say what happened."""
    nic_config = config(
        window, delta=delta, probe=probe, bitmap_packets=bitmap, reorder_packets=40, rto_ns=200_000,
        rto_backoff=2, first_psn=first_psn,
    )  # fmt: skip
    network = Paths(delays, {0: marks}, loss=loss, seed=seed).network(nic_config)
    network.add(flow(1, 60_500), flow(2, 999, src=2, dst=1))
    network.run()
    assert all(nic.idle and not nic.counters for nic in network.nics)
    assert {1: 60_500, 2: 999} == {seen.flow.id: seen.bytes for seen in network.receivers()}
    data = [
        (arrival.parsed, arrival.frame) for arrival in network.arrivals if isinstance(arrival.parsed, Data)
    ]
    marked = Counter(parsed.qpn - 100 for parsed, frame in data if frame.data[15] & 3 == 3)
    for record in network.records():
        assert marked[record.id] == record.ce_marked
        assert record.packets - record.retransmitted == -(-record.bytes // 1000)


def test_a_path_that_marks_gets_less():
    """Acknowledgments steer a flow away from congestion: four paths alike, but one marks."""
    nic_config = config(16, probe=0.02)
    paths = Paths([5_000] * 4, {2: 0.9}, seed=3)
    network = paths.network(nic_config)
    network.add(flow(1, 3_000_000))
    network.run()
    share = Counter(paths.of(arrival.frame) for arrival in network.sent if isinstance(arrival.parsed, Data))
    assert share[2] < 0.6 * min(share[other] for other in (0, 1, 3))


def test_a_slow_path_is_left_and_disorder_is_bounded():
    """With a small delta the flow leaves the path whose packets come too late."""
    by_delta = {}
    for delta in (4, 4000):
        nic_config = config(32, delta=delta, probe=0.01, reorder_packets=4000, bitmap_packets=150)
        paths = Paths([45_000, 45_000, 75_000, 45_000], seed=3)
        network = paths.network(nic_config)
        network.add(flow(1, 3_000_000))
        network.run()
        sent = Counter(
            paths.of(arrival.frame) for arrival in network.sent if isinstance(arrival.parsed, Data)
        )
        by_delta[delta] = sent[2], network.records()[0].out_of_order
    assert by_delta[4][0] < 0.5 * by_delta[4000][0]
    assert by_delta[4][1] < by_delta[4000][1]


def test_without_an_initial_window_the_window_is_taken():
    """In packets, at least one and at most the bitmap."""
    assert 7 == NicConfig(transport="mp-rdma", mtu_bytes=1000, window_bytes=7_900).initial_packets
    assert [1, 3, 5] == [
        NicConfig(mtu_bytes=1000, bitmap_packets=5, mp_rdma=MpRdmaNicConfig(length)).initial_packets
        for length in (1, 3_999, 90_000)
    ]


def test_a_link_that_is_the_bottleneck_sends_on_the_newest_paths():
    """Packets that the window lets go but the link does not take wait; fresh paths go first, slow ones not at all."""
    mp_rdma = sender(window=6, delta=3)
    for _ in range(2):
        mp_rdma.on_sent(0, mp_rdma.peek())
    for arrived, port in ((0, 50_001), (1, 50_002)):
        acknowledge(mp_rdma, arrived + 1, arrived, port)
    assert [50_002, 50_001] == [port for _, port in send_all(mp_rdma)[:2]]
