# SPDX-License-Identifier: Apache-2.0
"""dctcp: what is lost and what is not, a clock for every packet, and what the steering is told."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.hosts.options.dctcp import DctcpConfig
from tailrace.hosts.options.nic import NicConfig, SteeringConfig
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
        **{"path_rtt_ns": 10**9, **changes},
    )  # fmt: skip


def sender(packets: int = 1000, window: int = 4, **changes: Any) -> DctcpSender:
    return DctcpSender(packets, config(window, **changes), PORT)


def acknowledge(
    dctcp: DctcpSender,
    expected: int,
    arrived: int,
    *,
    marked: bool = False,
    sport: int = PORT,
    now_ns: int = 0,
) -> None:
    dctcp.on_ack(now_ns, False, expected, arrived, sport, marked)


def test_the_window_counts_what_is_in_flight():
    """A packet that is missing holds nothing back, until the receiver's bitmap ends."""
    dctcp = sender(bitmap_packets=8)
    assert [0, 1, 2, 3] == send_all(dctcp)
    for arrived, sent in ((1, [4]), (2, [5]), (4, [6]), (3, [7]), (5, [])):
        acknowledge(dctcp, 0, arrived)
        assert sent == send_all(dctcp)
    acknowledge(dctcp, 6, 0)
    assert [8, 9] == send_all(dctcp)
    assert (4, 6) == (dctcp.in_flight, dctcp.acked)


def test_nothing_is_lost_because_others_came_first():
    """However many."""
    dctcp = sender(window=200)
    send_all(dctcp)
    for arrived in range(1, 200):
        acknowledge(dctcp, 0, arrived)
    assert all(index >= 200 for index in send_all(dctcp))
    assert 0 == dctcp.timeouts


def test_a_trimmed_packet_goes_first():
    """In the order of the NACKs; the window has shrunk by each of them."""
    dctcp = sender(window=10)
    send_all(dctcp)
    dctcp.on_trimmed(0, 0, 5, PORT)
    dctcp.on_trimmed(0, 0, 3, PORT)
    assert (8, 8_000) == (dctcp.in_flight, dctcp.window.cwnd_bytes)
    acknowledge(dctcp, 0, 9)
    acknowledge(dctcp, 0, 8)
    assert [5, 3] == send_all(dctcp)
    assert not dctcp.done


def test_a_nack_of_an_earlier_transmission_changes_nothing():
    """Its port tells, if the packet went on another path since."""
    dctcp = sender(packets=2, window=8)
    dctcp.steering = Spray(SteeringConfig(), path_list(1, 1, 1, 1), 0, Given([0.1, 0.4, 0.9]))
    send_all(dctcp)
    dctcp.on_trimmed(0, 0, 0, 500)
    assert [0] == send_all(dctcp)
    assert 503 == dctcp.sport
    dctcp.on_trimmed(0, 0, 0, 500)
    assert NOTHING == dctcp.peek()
    dctcp.on_trimmed(0, 0, 0, 503)
    assert 0 == dctcp.peek()


def test_every_packet_has_its_own_clock():
    """Each times out when nothing was heard of it for the timeout, whatever becomes of others."""
    dctcp = sender(window=3)
    for now_ns in (0, 10, 500):
        dctcp.on_sent(now_ns, dctcp.peek())
    acknowledge(dctcp, 0, 1, now_ns=600)
    assert RTO_NS == dctcp.deadline_ns
    dctcp.on_time(RTO_NS - 1)
    assert 0 == dctcp.timeouts
    dctcp.on_time(RTO_NS)
    assert (1, 500 + RTO_NS) == (dctcp.timeouts, dctcp.deadline_ns)
    assert 0 == dctcp.peek()
    dctcp.on_time(1499)
    assert 1 == dctcp.timeouts
    dctcp.on_time(1500)
    assert 2 == dctcp.timeouts


def test_what_was_taken_for_lost_may_yet_come():
    """Then it does not go again."""
    dctcp = sender(window=3)
    send_all(dctcp)
    dctcp.on_time(RTO_NS)
    assert (3, 0) == (dctcp.timeouts, dctcp.peek())
    acknowledge(dctcp, 1, 0, now_ns=RTO_NS + 1)
    assert 1 == dctcp.peek()
    acknowledge(dctcp, 1, 2, now_ns=RTO_NS + 1)
    dctcp.on_sent(RTO_NS + 2, 1)
    assert 3 == dctcp.peek()


def test_what_was_taken_for_lost_may_be_in_order_already():
    """Its own answer was lost, and a later one tells."""
    dctcp = sender(packets=4, window=3)
    send_all(dctcp)
    dctcp.on_time(RTO_NS)
    acknowledge(dctcp, 2, 2, now_ns=RTO_NS + 1)
    assert [3] == send_all(dctcp, RTO_NS + 1)
    acknowledge(dctcp, 4, 3, now_ns=RTO_NS + 2)
    assert dctcp.done
    assert NOTHING == dctcp.peek()


def test_the_timeout_doubles_while_nothing_is_heard():
    """But not for packets that were sent before it had doubled; and not without end."""
    dctcp = sender(window=2, rto_backoff=2)
    dctcp.on_sent(0, 0)
    dctcp.on_sent(400, 1)
    dctcp.on_time(1000)
    assert (1, 1400) == (dctcp.timeouts, dctcp.deadline_ns)
    dctcp.on_time(1400)
    assert 2 == dctcp.timeouts
    now_ns = 1400
    for doubled in (2, 4, 4):
        dctcp.on_sent(now_ns, dctcp.peek())
        dctcp.on_time(now_ns + doubled * RTO_NS - 1)
        before = dctcp.timeouts
        dctcp.on_time(now_ns + doubled * RTO_NS)
        assert before + 1 == dctcp.timeouts
        now_ns += doubled * RTO_NS
    dctcp.on_sent(now_ns, dctcp.peek())
    acknowledge(dctcp, 0, 1, now_ns=now_ns + 10)
    assert dctcp.deadline_ns == now_ns + 10
    dctcp.on_time(now_ns + 10)
    assert dctcp.deadline_ns in (now_ns + RTO_NS, 1 << 61)


@pytest.mark.parametrize(("is_loss", "window"), [(True, 3), (False, 4)])
def test_a_timeout_narrows_the_window_where_it_is_a_loss(is_loss, window):
    """A trimmed packet does in any case."""
    dctcp = sender(timeout="loss" if is_loss else "path")
    dctcp.on_sent(0, 0)
    dctcp.on_time(RTO_NS)
    assert (1, window) == (dctcp.timeouts, dctcp.window.packets)
    dctcp.on_sent(RTO_NS, 0)
    dctcp.on_trimmed(RTO_NS, 0, 0, PORT)
    assert window - 1 == dctcp.window.packets


def test_a_timeout_may_take_only_the_packets_size():
    """As in the simulator of Spritz's authors: QuickAdapt, which would end the interval here, does not act."""
    windows = []
    for timeout in ("size", "loss"):
        dctcp = sender(window=9, timeout=timeout, path_rtt_ns=100)
        send_all(dctcp)
        acknowledge(dctcp, 1, 0)
        dctcp.on_time(RTO_NS)
        windows.append(dctcp.window.packets)
        assert 8 == dctcp.timeouts
    assert [1, 1] == windows
    dctcp = sender(window=9, timeout="size", path_rtt_ns=100)
    dctcp.on_sent(0, 0)
    dctcp.on_sent(RTO_NS, 1)
    dctcp.on_time(RTO_NS)
    acknowledge(dctcp, 0, 1, now_ns=RTO_NS + 200)
    assert 8 == dctcp.window.packets


def test_a_late_answer_counts_like_any_other():
    """One that was overtaken by another which told that more is in order."""
    dctcp = sender(window=8)
    send_all(dctcp)
    acknowledge(dctcp, 3, 2)
    assert (5, 3) == (dctcp.in_flight, dctcp.acked)
    acknowledge(dctcp, 1, 0, marked=True)
    assert (5, 3, 7_500) == (dctcp.in_flight, dctcp.acked, dctcp.window.cwnd_bytes)


@pytest.mark.parametrize(("expected", "arrived"), [(9, 3), (0, 9), (0, -1), (-1, 2), (5, 4)])
def test_nonsense_changes_nothing(expected, arrived):
    """Packets that were never sent."""
    dctcp = sender()
    send_all(dctcp)
    acknowledge(dctcp, expected, arrived, marked=True)
    dctcp.on_trimmed(0, expected, arrived, PORT)
    dctcp.on_ack(0, True, 0, 2, PORT, True)
    assert (0, 4, 4000) == (dctcp.acked, dctcp.in_flight, dctcp.window.cwnd_bytes)
    assert NOTHING == dctcp.peek()


def test_the_end_of_a_flow():
    """Nothing after its last packet, and done when all is acknowledged."""
    dctcp = sender(packets=3, window=9)
    assert [0, 1, 2] == send_all(dctcp)
    acknowledge(dctcp, 0, 2)
    acknowledge(dctcp, 0, 1)
    assert dctcp.acked < dctcp.packets
    acknowledge(dctcp, 3, 0)
    assert dctcp.done
    assert NOTHING == dctcp.peek()
    dctcp.on_time(1 << 62)
    assert 0 == dctcp.timeouts


def test_the_steering_is_told_what_became_of_each_packet():
    """By the port that the answer echoes, or that a lost packet had."""
    scout = Scout(SteeringConfig(ecn_threshold=9), path_list(5, 4, 3, 2), 0, Given([0.99, 0.01]))
    dctcp = sender(packets=3, window=2)
    dctcp.steering = scout
    send_all(dctcp)
    acknowledge(dctcp, 1, 0, sport=503, marked=True)
    assert {3: 1} == scout.ecn_counts
    acknowledge(dctcp, 2, 1, sport=502)
    assert [502] == scout.buffer_paths
    assert [2] == send_all(dctcp)
    assert 502 == dctcp.sport
    dctcp.on_trimmed(0, 2, 2, 502)
    assert ([], 0) == (scout.buffer_paths, scout.ecn_counts[2])
    assert [2] == send_all(dctcp)
    port = dctcp.sport
    dctcp.on_time(RTO_NS)
    assert 1 == scout.blocked
    assert scout.w.is_zero(port - 500)


def test_the_steering_may_learn_of_every_fourth_packet():
    """Of the first one, of each 4 KB without a mark, of a mark at once; the window counts every packet."""
    spray = Spray(SteeringConfig(buffer=99), path_list(*range(1, 13)), 0, Given([0.0] * 12))
    dctcp = sender(packets=12, window=12, dctcp=DctcpConfig(feedback_bytes=4000))
    dctcp.steering = spray
    send_all(dctcp)
    for arrived in range(12):
        acknowledge(dctcp, arrived + 1, arrived, sport=500 + arrived, marked=arrived == 6)
    # 500 is the first; 504 the fourth after it; 506 has a mark, which counts anew
    assert [500, 504, 510] == spray.buffer_paths
    assert 0 == dctcp.in_flight
    assert spray.ecn_rate > 0


def test_the_receiver_answers_every_packet_at_once():
    """In order or not, trimmed or not; a trimmed one that is here already is acknowledged."""
    receiver = make_receiver(99, config(bitmap_packets=4))
    answers = []
    for index, trimmed in (
        (2, False), (1, True), (2, True), (0, True), (1, False), (0, False), (0, True), (7, False), (8, True),
        (8, False), (3, False), (99, True),
    ):  # fmt: skip
        answer = receiver.on_trimmed(index) if trimmed else receiver.on_data(0, index, False)
        answers.append((answer, receiver.arrived, receiver.expected))
    assert [
        (ACK, 2, 0), (TRIMMED, 1, 0), (ACK, 2, 0), (TRIMMED, 0, 0), (ACK, 1, 0), (ACK, 0, 3), (ACK, 0, 3),
        (ACK, 7, 3), (TRIMMED, 8, 3), (SILENCE, 8, 3), (ACK, 3, 4), (SILENCE, 3, 4),
    ] == answers  # fmt: skip
    assert 5 == receiver.received


@pytest.mark.parametrize("transport", ["gbn", "sr", "mp-rdma"])
def test_other_receivers_take_trimmed_packets_for_lost_ones(transport):
    """And their senders take no notice of a NACK."""
    receiver = make_receiver(9, NicConfig(transport=transport))
    assert SILENCE == receiver.on_trimmed(0)
    assert (0, 0) == (receiver.expected, receiver.received)
