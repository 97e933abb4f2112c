# SPDX-License-Identifier: Apache-2.0
"""The window of dctcp: marks, FastIncrease and QuickAdapt, each by the numbers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.options.dctcp import DctcpConfig
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.ecn_window import EcnWindow

MTU = 1000
RTT_NS = 1000


def window(packets: int = 20, *, mtu_bytes: int = MTU, rtt_ns: int = RTT_NS, **changes: Any) -> EcnWindow:
    """Intervals of QuickAdapt last one RTT."""
    dctcp = DctcpConfig(**{"adapt_rtts": 1.0, "adapt_scale": 0.5, **changes})
    return EcnWindow(
        NicConfig(mtu_bytes=mtu_bytes, window_bytes=packets * mtu_bytes, path_rtt_ns=rtt_ns, dctcp=dctcp)
    )


def mark(ecn_window: EcnWindow, count: int) -> None:
    for _ in range(count):
        ecn_window.on_ack(0, True, 0)


def acknowledge(ecn_window: EcnWindow, count: int) -> None:
    for _ in range(count):
        ecn_window.on_ack(0, False, 0)


def test_it_begins_at_its_maximum():
    """At least one packet, in whole packets."""
    assert (20_000, 20) == (window().cwnd_bytes, window().packets)
    assert (1000, 1) == (window(1).cwnd_bytes, window(1).packets)
    tiny = EcnWindow(NicConfig(mtu_bytes=1500, window_bytes=10, path_rtt_ns=1))
    assert (1500, 1) == (tiny.cwnd_bytes, tiny.packets)


def test_two_marks_take_one_packet():
    """Half a packet each, down to one packet."""
    ecn_window = window()
    mark(ecn_window, 1)
    assert (19_500, 19) == (ecn_window.cwnd_bytes, ecn_window.packets)
    mark(ecn_window, 5)
    assert (17_000, 17) == (ecn_window.cwnd_bytes, ecn_window.packets)
    mark(ecn_window, 100)
    assert (1000, 1) == (ecn_window.cwnd_bytes, ecn_window.packets)


def test_an_unmarked_window_adds_a_packet():
    """mtu²/cwnd for each acknowledgment."""
    ecn_window = window(increase_packets=0.0)
    mark(ecn_window, 20)
    assert 10_000 == ecn_window.cwnd_bytes
    expected = 10_000.0
    for _ in range(10):
        acknowledge(ecn_window, 1)
        expected += 1000 * 1000 / expected
        assert expected == ecn_window.cwnd_bytes
    assert 10_900 < ecn_window.cwnd_bytes < 11_000
    acknowledge(ecn_window, 1000)
    assert (20_000, 20) == (ecn_window.cwnd_bytes, ecn_window.packets)


def test_fast_increase_begins_after_a_clear_window_and_ends_with_a_mark():
    """Two packets for each acknowledgment here; then it takes another clear window."""
    ecn_window = window(100, increase_packets=2.0)
    mark(ecn_window, 180)
    assert 10_000 == ecn_window.cwnd_bytes
    acknowledge(ecn_window, 10)
    slow = ecn_window.cwnd_bytes
    assert slow < 11_000
    acknowledge(ecn_window, 1)
    assert slow + 2000 == ecn_window.cwnd_bytes
    acknowledge(ecn_window, 5)
    assert slow + 12_000 == ecn_window.cwnd_bytes
    mark(ecn_window, 1)
    assert slow + 11_500 == ecn_window.cwnd_bytes
    acknowledge(ecn_window, 20)
    assert ecn_window.cwnd_bytes < slow + 12_500
    acknowledge(ecn_window, 6)
    assert ecn_window.cwnd_bytes > slow + 14_000


def test_a_loss_ends_fast_increase():
    """And takes its own bytes off."""
    ecn_window = window(100)
    mark(ecn_window, 190)
    acknowledge(ecn_window, 30)
    before = ecn_window.cwnd_bytes
    ecn_window.on_loss(0, 0)
    assert before - 1000 == ecn_window.cwnd_bytes
    acknowledge(ecn_window, 1)
    assert ecn_window.cwnd_bytes < before - 900


def test_quick_adapt_takes_what_has_arrived():
    """At the end of an interval with losses the window is half of the bytes that arrived in it, here."""
    ecn_window = window(100)
    for _ in range(5):
        ecn_window.on_loss(0, 50)
    assert 95_000 == ecn_window.cwnd_bytes
    for _ in range(11):
        ecn_window.on_ack(500, True, 40)
    assert 95_000 - 5_500 == ecn_window.cwnd_bytes
    ecn_window.on_ack(RTT_NS, False, 7)  # the 12th
    assert 6_000 == ecn_window.cwnd_bytes
    # what was in flight then does not count
    ecn_window.on_ack(RTT_NS, True, 0)
    for _ in range(3):
        ecn_window.on_ack(RTT_NS, True, 0)
        ecn_window.on_loss(RTT_NS, 0)
    assert 6_000 == ecn_window.cwnd_bytes
    ecn_window.on_ack(RTT_NS, True, 0)
    assert 5_500 == ecn_window.cwnd_bytes


def test_the_first_interval_begins_with_the_first_answer():
    """However long that took: before it nothing can have arrived."""
    ecn_window = window(100, adapt_scale=1.0)
    ecn_window.on_ack(10 * RTT_NS, False, 0)
    ecn_window.on_loss(10 * RTT_NS + 1, 0)
    for _ in range(40):
        ecn_window.on_ack(11 * RTT_NS - 1, True, 0)
    assert 79_000 == ecn_window.cwnd_bytes
    ecn_window.on_ack(11 * RTT_NS, True, 0)
    assert 42_000 == ecn_window.cwnd_bytes


def test_a_loss_may_end_the_interval_too():
    """When nothing arrives at all one packet is left."""
    ecn_window = window(100)
    ecn_window.on_loss(0, 99)
    ecn_window.on_loss(RTT_NS, 98)
    assert (1000, 1) == (ecn_window.cwnd_bytes, ecn_window.packets)


def test_quick_adapt_ignores_no_ack_for_a_packet_that_timed_out():
    """Of ten in flight four time out: six ACKs are ignored, and the seventh opens the window."""
    ecn_window = window(100, increase_packets=0.0)
    ecn_window.on_loss(0, 0)
    ecn_window.on_ack(RTT_NS, False, 10)
    for _ in range(4):
        ecn_window.narrow()
    acknowledge(ecn_window, 6)
    assert 1000 == ecn_window.cwnd_bytes
    acknowledge(ecn_window, 1)
    assert 2000 == ecn_window.cwnd_bytes


def test_intervals_without_losses_change_nothing():
    """Only what has arrived since the last one's end counts."""
    ecn_window = window(100, increase_packets=0.0)
    for now_ns in range(0, 5 * RTT_NS, 100):
        ecn_window.on_ack(now_ns, False, 0)
    assert 100_000 == ecn_window.cwnd_bytes
    ecn_window.on_loss(5 * RTT_NS - 1, 0)
    ecn_window.on_ack(5 * RTT_NS, False, 0)
    assert 5 * MTU == ecn_window.cwnd_bytes  # ten arrived since 4000


def test_a_longer_interval_counts_for_its_share():
    """Eight packets in four intervals are two in one."""
    ecn_window = window(100)
    ecn_window.on_loss(0, 0)
    for _ in range(7):
        ecn_window.on_ack(10, False, 0)
    ecn_window.on_ack(4 * RTT_NS, False, 0)
    assert 1000 == ecn_window.cwnd_bytes
    ecn_window = window(100, adapt_scale=1.0)
    ecn_window.on_loss(0, 0)
    for _ in range(7):
        ecn_window.on_ack(10, False, 0)
    ecn_window.on_ack(4 * RTT_NS, False, 0)
    assert 2000 == ecn_window.cwnd_bytes


def test_the_round_trip_time_is_learnt_if_it_is_not_known():
    """The smallest one counts; before the first one there is no QuickAdapt."""
    ecn_window = window(100, rtt_ns=0)
    ecn_window.on_loss(0, 0)
    ecn_window.on_ack(10**9, False, 0)
    assert ecn_window.cwnd_bytes > 98_000
    ecn_window = window(100, rtt_ns=0)
    ecn_window.on_loss(0, 0)
    for rtt_ns in (5000, 3000, 4000):
        ecn_window.learn(rtt_ns)
    ecn_window.on_ack(2999, False, 0)
    assert ecn_window.cwnd_bytes > 98_000
    ecn_window.on_ack(3000, False, 0)
    assert 1000 == ecn_window.cwnd_bytes
    known = window(100)
    known.learn(10)
    known.on_loss(0, 0)
    known.on_ack(10, False, 0)
    assert known.cwnd_bytes > 98_000


@settings(max_examples=60)
@given(
    packets=st.integers(1, 50),
    mtu=st.sampled_from([1, 999, 4096]),
    rtt=st.sampled_from([0, 1, 70, 5000]),
    events=st.lists(
        st.tuples(st.integers(0, 90), st.sampled_from(["ack", "mark", "loss", "learn"]), st.integers(0, 50)),
        min_size=20,
        max_size=150,
    ),
)
def test_it_stays_within_its_bounds(packets, mtu, rtt, events):
    """One packet to the maximum, whatever happens."""
    ecn_window, now_ns = window(packets, mtu_bytes=mtu, rtt_ns=rtt), 0
    for later_ns, kind, number in events:
        now_ns += later_ns
        if kind == "loss":
            ecn_window.on_loss(now_ns, number)
        elif kind == "learn":
            ecn_window.learn(number)
        else:
            ecn_window.on_ack(now_ns, kind == "mark", number)
        assert mtu <= ecn_window.cwnd_bytes <= packets * mtu
        assert int(ecn_window.cwnd_bytes / mtu) == ecn_window.packets
