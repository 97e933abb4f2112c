# SPDX-License-Identifier: Apache-2.0
"""tcp: what it sends against a model told from the RFCs, its bursts, its timer, and its batched answers."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.tcp import TcpConfig
from tailrace.hosts.transport import make_receiver, make_sender
from tailrace.hosts.transport.base import ACK, NOTHING, SILENCE
from tailrace.hosts.transport.tcp.rto import RtoClock
from tailrace.hosts.transport.tcp.transport import LOSS, OPEN, RECOVERY, TcpSender
from tests.hosts.sending import send_all
from tests.hosts.tcp_oracle import MANY, SenderOracle, TimerOracle, WindowOracle

RTO_NS = 1_000
PORT = 4000


def config(*, window: int = 0, tcp: TcpConfig | None = None, **changes: Any) -> NicConfig:
    """Packets of 1000 bytes that leave one by one."""
    return NicConfig(
        transport="tcp",
        mtu_bytes=1000,
        window_bytes=1000 * window,
        tcp=tcp or TcpConfig(burst_bytes=1000),
        **{"rto_ns": RTO_NS, "ack_every": 4, "ack_delay_ns": 500, **changes},
    )


def sender(packets: int = 1000, **changes: Any) -> TcpSender:
    return TcpSender(packets, config(**changes), PORT)


def bursty(packets: int = 10_000, *, initial: int = 10, burst: int = 8, **changes: Any) -> TcpSender:
    """One whose bursts have so many packets."""
    return sender(packets, tcp=TcpConfig(initial, 1000 * burst), **changes)


def acknowledge(
    tcp: TcpSender, expected: int, arrived: int = -1, *, now_ns: int = 0, marked: bool = False
) -> None:
    """Acknowledges packets below `expected`; the ACK answers `arrived`, by default the last of these."""
    tcp.on_ack(now_ns, False, expected, expected - 1 if arrived < 0 else arrived, PORT, marked)


# ---- against the model ----


class Wire:
    """A model of the receiver, and of what is under way to it and back, for one sender and its model."""

    def __init__(self, packets: int, initial: int, window: int, duplicates: int) -> None:
        most = window or 4096
        self.tcp = sender(packets, window=window, tcp=TcpConfig(initial, 1000, duplicates), rto_backoff=3)
        model = WindowOracle(min(initial, most), most)
        self.model = SenderOracle(packets, model, most, duplicates)
        self.packets, self.now_ns = packets, 0
        self.data: list[int] = []
        self.answers: list[tuple[int, int]] = []
        self.here: set[int] = set()
        self.send()

    def send(self) -> None:
        """Both send as much as they may, and agree on all that they know."""
        sent = send_all(self.tcp, self.now_ns)
        assert self.model.send_all() == sent
        self.data += sent
        tcp, model = self.tcp, self.model
        assert (model.acked, model.fresh, model.pipe()) == (tcp.acked, tcp.fresh, tcp.in_flight)
        assert model.window.cwnd == tcp.window.packets
        assert min(model.window.ssthresh, model.window.most) == tcp.window.threshold or (
            model.window.ssthresh > model.window.most
        )
        states = {(True, True): LOSS, (True, False): RECOVERY, (False, False): OPEN}
        assert states[model.recovery_point is not None, model.after_timeout] == tcp.state
        assert tcp.done or (tcp.deadline_ns != NEVER) == (tcp.acked < tcp.fresh)

    def arrive(self, position: int) -> None:
        index = self.data.pop(position % len(self.data))
        self.here.add(index)
        expected = next(number for number in range(self.packets + 1) if number not in self.here)
        self.answers.append((expected, index))

    def answer(self, marked: bool) -> None:
        expected, arrived = self.answers.pop(0)
        self.now_ns += 7
        acknowledge(self.tcp, expected, arrived, now_ns=self.now_ns, marked=marked)
        self.model.on_ack(expected, arrived, marked)
        self.send()

    def timeout(self) -> None:
        self.now_ns = self.tcp.deadline_ns
        self.tcp.on_time(self.now_ns)
        self.model.on_timeout()
        self.send()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["arrive", "arrive", "arrive", "answer", "answer", "overtake", "lose", "mark", "mute", "timeout"]
        ),
        st.integers(0, 30),
    ),
    max_size=150,
)


@settings(max_examples=200)
@given(
    packets=st.integers(1, 120),
    initial=st.integers(1, 20),
    window=st.sampled_from([0, 6, 30]),
    duplicates=st.integers(1, 4),
    steps=STEPS,
)
def test_it_sends_what_the_model_sends(packets, initial, window, duplicates, steps):
    """Whatever is lost, overtaken, marked or not answered; and in the end everything is acknowledged."""
    wire = Wire(packets, initial, window, duplicates)
    for what, number in steps:
        if what == "arrive" and wire.data:
            wire.arrive(0)
        elif what == "overtake" and wire.data:
            wire.arrive(number)
        elif what == "lose" and wire.data:
            wire.data.pop(number % len(wire.data))
        elif what == "mute" and wire.answers:
            wire.answers.pop(number % len(wire.answers))
        elif what in ("answer", "mark") and wire.answers:
            wire.answer(what == "mark")
        elif what == "timeout" and wire.tcp.deadline_ns != NEVER:
            wire.timeout()
    while not wire.tcp.done:
        if wire.data:
            wire.arrive(0)
        elif wire.answers:
            wire.answer(False)
        else:
            wire.timeout()
    assert NOTHING == wire.tcp.peek()


# ---- the window ----


def test_a_timeout_begins_anew():
    """With one packet; the threshold stays when there are more timeouts without progress (RFC 5681 §3.1)."""
    tcp = sender()
    send_all(tcp)
    tcp.on_time(RTO_NS - 1)
    assert 0 == tcp.timeouts
    tcp.on_time(RTO_NS)
    assert (1, LOSS, 1, 5) == (tcp.timeouts, tcp.state, tcp.window.packets, tcp.window.threshold)
    assert [0] == send_all(tcp, RTO_NS)
    assert tcp.deadline_ns == RTO_NS + 2 * RTO_NS
    tcp.on_time(3 * RTO_NS)
    assert (2, 1, 5) == (tcp.timeouts, tcp.window.packets, tcp.window.threshold)
    assert [0] == send_all(tcp, 3 * RTO_NS)
    # all but the first had arrived: nothing of them goes again
    acknowledge(tcp, 10, 0, now_ns=3 * RTO_NS + 10)
    assert OPEN == tcp.state
    assert [10, 11, 12, 13, 14, 15] == send_all(tcp, 3 * RTO_NS + 10)


@pytest.mark.parametrize(("expected", "arrived"), [(11, 3), (-1, 2), (0, 10), (0, 99)])
def test_nonsense_changes_nothing(expected, arrived):
    """Packets that were never sent, and NAKs, which its receiver has none of."""
    tcp = sender()
    send_all(tcp)
    acknowledge(tcp, expected, arrived)
    tcp.on_ack(0, True, 0, 5, PORT, False)
    tcp.on_trimmed(0, 0, 5, PORT)
    assert (0, 10, 10) == (tcp.acked, tcp.in_flight, tcp.window.packets)
    assert NOTHING == tcp.peek()


# ---- bursts ----


def test_bursts_are_whole():
    """A third of the window, or what the offload takes, or nothing until more is acknowledged."""
    tcp = bursty(burst=20)
    assert (list(range(10)), 0) == (send_all(tcp), tcp.burst_left)
    tcp.window.threshold = 10
    for expected, sent in ((1, []), (2, []), (3, [10, 11, 12]), (5, []), (6, [13, 14, 15])):
        acknowledge(tcp, expected)
        assert sent == send_all(tcp)
    acknowledge(tcp, 16)
    assert list(range(16, 27)) == send_all(tcp)


def test_a_burst_is_never_longer_than_the_offload():
    """The next one follows at once, if the window has room for it, or for a third of itself."""
    tcp = bursty(initial=22, burst=8)
    left = []
    while (index := tcp.peek()) != NOTHING:
        tcp.on_sent(0, index)
        left.append(tcp.burst_left)
    assert [7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0] == left
    acknowledge(tcp, 1)
    # 23 packets of window: a third of them is 7, and there is room for 8
    assert 8 == len(send_all(tcp))


def test_the_last_burst_of_a_flow_does_not_wait():
    """There is nothing to gather for it."""
    tcp = bursty(11, burst=20)
    send_all(tcp)
    tcp.window.threshold = 10
    acknowledge(tcp, 1)
    assert [10] == send_all(tcp)


def test_no_burst_waits_while_something_is_lost():
    """Recovery goes on with whatever the window lets go."""
    tcp = bursty(initial=30, burst=30)
    send_all(tcp)
    for arrived in range(1, 16):
        acknowledge(tcp, 0, arrived)
    assert ([0], RECOVERY, 15) == (send_all(tcp), tcp.state, tcp.window.packets)
    acknowledge(tcp, 0, 16)
    acknowledge(tcp, 0, 17)
    # 13 of 15 are in flight: a third of the window would be 5
    assert [30, 31] == send_all(tcp)


def test_what_is_lost_ends_a_burst():
    """And so does a timeout."""
    tcp = bursty(initial=20)
    for _ in range(5):
        tcp.on_sent(0, tcp.peek())
    assert 3 == tcp.burst_left
    for arrived in (2, 3, 4):
        acknowledge(tcp, 1, arrived)
    assert (RECOVERY, 0, 1) == (tcp.state, tcp.burst_left, tcp.peek())
    other = bursty(initial=20)
    other.on_sent(0, 0)
    other.on_time(RTO_NS)
    assert (0, 0) == (other.burst_left, other.peek())


# ---- the timer ----


@settings(max_examples=100)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60))
def test_the_timer_follows_rfc_6298(samples):
    """Within what integers cost: 1/8 ns a sample of SRTT, and 4 times 1 ns of RTTVAR's."""
    clock, oracle = RtoClock(1, 6), TimerOracle()
    for number, sample in enumerate(samples, 1):
        clock.on_sample(sample)
        oracle.sample(sample)
        assert abs(clock.rto_ns - oracle.rto) <= 8 + 4 * min(number, 8)


def test_the_timer_has_a_least_value_and_doubles():
    """Up to a limit, and until there is progress."""
    clock = RtoClock(500, 2)
    assert 500 == clock.rto_ns
    clock.on_sample(100)
    assert (500, False) == (clock.rto_ns, clock.backed_off)
    clock.on_sample(1_000)
    expected = Fraction(7, 8) * 100 + Fraction(1, 8) * 1000 + 4 * (Fraction(3, 4) * 50 + Fraction(900, 4))
    assert abs(clock.rto_ns - expected) <= 8
    once = clock.rto_ns
    for factor in (2, 4, 4):
        clock.on_timeout()
        assert (factor * once, True) == (clock.rto_ns, clock.backed_off)
    clock.on_progress()
    assert once == clock.rto_ns


def test_what_was_sent_twice_is_not_measured():
    """Karn's rule: the answer may be that of either."""
    tcp = sender(rto_ns=10)
    send_all(tcp)
    tcp.on_time(10)
    send_all(tcp, 11)
    acknowledge(tcp, 10, 0, now_ns=5_000)
    assert 10 == tcp.rto.rto_ns
    send_all(tcp, 5_000)
    acknowledge(tcp, 11, now_ns=5_100)
    assert 100 + 4 * 50 == tcp.rto.rto_ns


def test_what_waited_for_a_retransmission_is_not_measured():
    """Nor is a packet behind one that was missing: its answer came late for that."""
    tcp = sender(rto_ns=10)
    send_all(tcp)
    acknowledge(tcp, 1, now_ns=50)
    assert 50 + 4 * 25 == tcp.rto.rto_ns
    send_all(tcp, 50)
    for arrived in (3, 4, 5):
        acknowledge(tcp, 2, arrived, now_ns=60)
    send_all(tcp, 60)
    acknowledge(tcp, 12, 2, now_ns=90_000)
    assert 50 + 4 * 25 == tcp.rto.rto_ns


# ---- the receiver ----


def test_answers_are_gathered():
    """One for four packets, or after the delay; the last packet is answered at once."""
    receiver = make_receiver(11, config())
    assert receiver.reports_arrival
    answers = [receiver.on_data(number, number, True) for number in range(6)]
    assert [SILENCE, SILENCE, SILENCE, ACK, SILENCE, SILENCE] == answers
    assert 4 + 500 == receiver.deadline_ns
    assert SILENCE == receiver.on_time(503)
    assert (ACK, NEVER) == (receiver.on_time(504), receiver.deadline_ns)
    assert [SILENCE, SILENCE, SILENCE, ACK, ACK] == [receiver.on_data(600, i, False) for i in range(6, 11)]
    assert receiver.done


def test_whatever_is_not_in_order_is_answered_at_once():
    """A gap, what is beyond it, what fills it, and what was here already; it is kept."""
    receiver = make_receiver(99, config(bitmap_packets=8))
    answers = [(receiver.on_data(0, index, False), receiver.expected) for index in (0, 2, 3, 3, 1, 0, 4, 20)]
    assert [
        (SILENCE, 1), (ACK, 1), (ACK, 1), (ACK, 1), (ACK, 4), (ACK, 4), (SILENCE, 5), (ACK, 5),
    ] == answers  # fmt: skip
    assert 5 == receiver.received
    assert SILENCE == receiver.on_trimmed(5)


# ---- settings ----


def test_it_needs_no_window():
    """The receiver's memory is one then."""
    tcp = make_sender(5, config(bitmap_packets=3), PORT, random.Random(1))
    assert isinstance(tcp, TcpSender)
    assert ([0, 1, 2], MANY) == (send_all(tcp), MANY)
