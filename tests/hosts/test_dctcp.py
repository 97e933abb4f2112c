# SPDX-License-Identifier: Apache-2.0
"""dctcp: what is lost and what is not, a clock for every packet, and what the steering is told."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.hosts.options.nic import DctcpConfig, NicConfig, SteeringConfig
from tailrace.hosts.steering.scout import Scout
from tailrace.hosts.steering.spray import Spray
from tailrace.hosts.transport import make_receiver
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE, TRIMMED
from tailrace.hosts.transport.dctcp import DctcpSender
from tests.hosts.sending import send_all
from tests.hosts.steering.path_lists import Given, path_list

RTO_NS = 1000
PORT = 4000


def config(window: int = 4, **changes: Any) -> NicConfig:
    return NicConfig(
        transport="dctcp", mtu_bytes=1000, window_bytes=1000 * window, rto_ns=RTO_NS,
        **{"dctcp": DctcpConfig(rtt_ns=10**9), **changes},
    )  # fmt: skip


def sender(packets: int = 1000, window: int = 4, **changes: Any) -> DctcpSender:
    return DctcpSender(packets, config(window, **changes), PORT)


def acknowledge(
    one: DctcpSender, expected: int, arrived: int, *, marked: bool = False, sport: int = PORT, now_ns: int = 0
) -> None:
    one.on_ack(now_ns, False, expected, arrived, sport, marked)


def test_the_window_counts_what_is_in_flight():
    """A packet that is missing holds nothing back, until the receiver's bitmap ends."""
    one = sender(bitmap_packets=8)
    assert [0, 1, 2, 3] == send_all(one)
    for arrived, sent in ((1, [4]), (2, [5]), (4, [6]), (3, [7]), (5, [])):
        acknowledge(one, 0, arrived)
        assert sent == send_all(one)
    acknowledge(one, 6, 0)
    assert [8, 9] == send_all(one)
    assert (4, 6) == (one.in_flight, one.acked)


def test_nothing_is_lost_because_others_came_first():
    """However many."""
    one = sender(window=200)
    send_all(one)
    for arrived in range(1, 200):
        acknowledge(one, 0, arrived)
    assert all(index >= 200 for index in send_all(one))
    assert 0 == one.timeouts


def test_a_trimmed_packet_goes_first():
    """In the order of the NACKs; the window has shrunk by each of them."""
    one = sender(window=10)
    send_all(one)
    one.on_trimmed(0, 0, 5, PORT)
    one.on_trimmed(0, 0, 3, PORT)
    assert (8, 8_000) == (one.in_flight, one.window.cwnd_bytes)
    acknowledge(one, 0, 9)
    acknowledge(one, 0, 8)
    assert [5, 3] == send_all(one)
    assert not one.done


def test_a_nack_of_an_earlier_transmission_changes_nothing():
    """Its port tells, if the packet went on another path since."""
    one = sender(packets=2, window=8)
    one.steering = Spray(SteeringConfig(), path_list(1, 1, 1, 1), 0, Given([0.1, 0.4, 0.9]))
    send_all(one)
    one.on_trimmed(0, 0, 0, 500)
    assert [0] == send_all(one)
    assert 503 == one.sport
    one.on_trimmed(0, 0, 0, 500)
    assert NOTHING == one.peek()
    one.on_trimmed(0, 0, 0, 503)
    assert 0 == one.peek()


def test_every_packet_has_its_own_clock():
    """Each times out when nothing was heard of it for the timeout, whatever becomes of others."""
    one = sender(window=3)
    for now_ns in (0, 10, 500):
        one.on_sent(now_ns, one.peek())
    acknowledge(one, 0, 1, now_ns=600)
    assert RTO_NS == one.deadline_ns
    one.on_time(RTO_NS - 1)
    assert 0 == one.timeouts
    one.on_time(RTO_NS)
    assert (1, 500 + RTO_NS) == (one.timeouts, one.deadline_ns)
    assert 0 == one.peek()
    one.on_time(1499)
    assert 1 == one.timeouts
    one.on_time(1500)
    assert 2 == one.timeouts


def test_what_was_taken_for_lost_may_yet_come():
    """Then it does not go again."""
    one = sender(window=3)
    send_all(one)
    one.on_time(RTO_NS)
    assert (3, 0) == (one.timeouts, one.peek())
    acknowledge(one, 1, 0, now_ns=RTO_NS + 1)
    assert 1 == one.peek()
    acknowledge(one, 1, 2, now_ns=RTO_NS + 1)
    one.on_sent(RTO_NS + 2, 1)
    assert 3 == one.peek()


def test_what_was_taken_for_lost_may_be_in_order_already():
    """Its own answer was lost, and a later one tells."""
    one = sender(packets=4, window=3)
    send_all(one)
    one.on_time(RTO_NS)
    acknowledge(one, 2, 2, now_ns=RTO_NS + 1)
    assert [3] == send_all(one, RTO_NS + 1)
    acknowledge(one, 4, 3, now_ns=RTO_NS + 2)
    assert one.done
    assert NOTHING == one.peek()


def test_the_timeout_doubles_while_nothing_is_heard():
    """But not for packets that were sent before it had doubled; and not without end."""
    one = sender(window=2, rto_backoff=2)
    one.on_sent(0, 0)
    one.on_sent(400, 1)
    one.on_time(1000)
    assert (1, 1400) == (one.timeouts, one.deadline_ns)
    one.on_time(1400)
    assert 2 == one.timeouts
    now_ns = 1400
    for doubled in (2, 4, 4):
        one.on_sent(now_ns, one.peek())
        one.on_time(now_ns + doubled * RTO_NS - 1)
        before = one.timeouts
        one.on_time(now_ns + doubled * RTO_NS)
        assert before + 1 == one.timeouts
        now_ns += doubled * RTO_NS
    one.on_sent(now_ns, one.peek())
    acknowledge(one, 0, 1, now_ns=now_ns + 10)
    assert one.deadline_ns == now_ns + 10
    one.on_time(now_ns + 10)
    assert one.deadline_ns in (now_ns + RTO_NS, 1 << 61)


@pytest.mark.parametrize(("is_loss", "window"), [(True, 3), (False, 4)])
def test_a_timeout_narrows_the_window_where_it_is_a_loss(is_loss, window):
    """A trimmed packet does in any case."""
    one = sender(dctcp=DctcpConfig(rtt_ns=10**9), timeout="loss" if is_loss else "path")
    one.on_sent(0, 0)
    one.on_time(RTO_NS)
    assert (1, window) == (one.timeouts, one.window.packets)
    one.on_sent(RTO_NS, 0)
    one.on_trimmed(RTO_NS, 0, 0, PORT)
    assert window - 1 == one.window.packets


def test_a_late_answer_counts_like_any_other():
    """One that was overtaken by another which told that more is in order."""
    one = sender(window=8)
    send_all(one)
    acknowledge(one, 3, 2)
    assert (5, 3) == (one.in_flight, one.acked)
    acknowledge(one, 1, 0, marked=True)
    assert (5, 3, 7_500) == (one.in_flight, one.acked, one.window.cwnd_bytes)


@pytest.mark.parametrize(("expected", "arrived"), [(9, 3), (0, 9), (0, -1), (-1, 2), (5, 4)])
def test_nonsense_changes_nothing(expected, arrived):
    """Packets that were never sent."""
    one = sender()
    send_all(one)
    acknowledge(one, expected, arrived, marked=True)
    one.on_trimmed(0, expected, arrived, PORT)
    one.on_ack(0, True, 0, 2, PORT, True)
    assert (0, 4, 4000) == (one.acked, one.in_flight, one.window.cwnd_bytes)
    assert NOTHING == one.peek()


def test_the_end_of_a_flow():
    """Nothing after its last packet, and done when all is acknowledged."""
    one = sender(packets=3, window=9)
    assert [0, 1, 2] == send_all(one)
    acknowledge(one, 0, 2)
    acknowledge(one, 0, 1)
    assert one.acked < one.packets
    acknowledge(one, 3, 0)
    assert one.done
    assert NOTHING == one.peek()
    one.on_time(1 << 62)
    assert 0 == one.timeouts


def test_the_steering_is_told_what_became_of_each_packet():
    """By the port that the answer echoes, or that a lost packet had."""
    scout = Scout(SteeringConfig(ecn_threshold=9), path_list(5, 4, 3, 2), 0, Given([0.99, 0.01]))
    one = sender(packets=3, window=2)
    one.steering = scout
    send_all(one)
    acknowledge(one, 1, 0, sport=503, marked=True)
    assert {3: 1} == scout.ecn_counts
    acknowledge(one, 2, 1, sport=502)
    assert [502] == scout.buffer_paths
    assert [2] == send_all(one)
    assert 502 == one.sport
    one.on_trimmed(0, 2, 2, 502)
    assert ([], 0) == (scout.buffer_paths, scout.ecn_counts[2])
    assert [2] == send_all(one)
    port = one.sport
    one.on_time(RTO_NS)
    assert 1 == scout.blocked
    assert scout.w.is_zero(port - 500)


def test_the_receiver_answers_every_packet_at_once():
    """In order or not, trimmed or not; a trimmed one that is here already is acknowledged."""
    receiver = make_receiver(99, config(bitmap_packets=4))
    told = []
    for index, trimmed in (
        (2, False), (1, True), (2, True), (0, True), (1, False), (0, False), (0, True), (7, False), (8, True),
        (8, False), (3, False), (99, True),
    ):  # fmt: skip
        answer = receiver.on_trimmed(index) if trimmed else receiver.on_data(0, index, False)
        told.append((answer, receiver.arrived, receiver.expected))
    assert [
        (ACK, 2, 0), (TRIMMED, 1, 0), (ACK, 2, 0), (TRIMMED, 0, 0), (ACK, 1, 0), (ACK, 0, 3), (ACK, 0, 3),
        (ACK, 7, 3), (TRIMMED, 8, 3), (SILENCE, 8, 3), (ACK, 3, 4), (SILENCE, 3, 4),
    ] == told  # fmt: skip
    assert 5 == receiver.received


@pytest.mark.parametrize("transport", ["gbn", "sr", "mp-rdma"])
def test_other_receivers_take_trimmed_packets_for_lost_ones(transport):
    """And their senders take no notice of a NACK."""
    receiver = make_receiver(9, NicConfig(transport=transport))
    assert SILENCE == receiver.on_trimmed(0)
    assert (0, 0) == (receiver.expected, receiver.received)


def test_a_flow_of_its_own_port_is_not_steered():
    """dctcp alone is a transport as any other."""
    one = sender()
    one.on_sent(0, one.peek())
    assert PORT == one.sport
    one.steering = Spray(SteeringConfig(), path_list(1, 1), 0, random.Random(1))
    one.on_sent(0, one.peek())
    assert one.sport in (500, 501)
