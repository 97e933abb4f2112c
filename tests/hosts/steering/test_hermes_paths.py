# SPDX-License-Identifier: Apache-2.0
"""What a path is like for Hermes: its classes, and what is sensed for them, step by step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT
from tailrace.hosts.steering.hermes_paths import CONGESTED, FAILED, GOOD, GREY, HermesHost, RateMeter
from tests.hosts.steering.hermes_story import BASE_NS, HIGH_NS, LOW_NS, MS, known, sense, settings_of


@pytest.mark.parametrize(
    ("rtt_ns", "share", "kind"),
    [
        (LOW_NS - 1, 0.2, GOOD),
        (LOW_NS, 0.2, GREY),
        (BASE_NS, 0.0, GOOD),
        (BASE_NS, 1.0, GREY),
        (HIGH_NS, 1.0, GREY),
        (HIGH_NS + 1, 1.0, CONGESTED),
        (HIGH_NS + 1, 0.6, CONGESTED),
        (HIGH_NS + 1, 0.2, GREY),
        (10**9, 0.0, GREY),
    ],
)
def test_kinds(rtt_ns, share, kind):
    """Good and congested take both signs, anything else is grey."""
    paths = known()
    sense(paths, 1, rtt_ns, share)
    assert [GOOD, kind, GOOD, GOOD] == [paths.kind(0, path) for path in range(4)]


def test_averages():
    """1/8 for the RTT, which begins with the first packet's, 1/16 for the share of marks, which begins at 0."""
    paths = known()
    paths.on_rtt(0, 0, 100_000)
    assert 100_000 == paths.rtt_ns(0, 0)
    paths.on_rtt(0, 0, 180_000)
    assert 110_000 == paths.rtt_ns(0, 0)
    paths.on_rtt(0, 0, 30_000)
    assert 100_000 == paths.rtt_ns(0, 0)
    for _ in range(2):
        paths.on_mark(0, 0, True)
    assert 1 - (15 / 16) ** 2 == paths.ecn(0, 0) / 2**20
    paths.on_mark(0, 0, False)
    assert 15 / 16 * (1 - (15 / 16) ** 2) == pytest.approx(paths.ecn(0, 0) / 2**20, abs=1e-5)


def test_what_was_heard_long_ago_counts_no_more():
    """The path is taken for good, and begins anew."""
    paths = known(stale_ns=1000)
    sense(paths, 0, HIGH_NS + 5000, 1.0)
    assert (CONGESTED, CONGESTED) == (paths.kind(0, 0), paths.kind(1000, 0))
    assert (GOOD, BASE_NS, 0) == (paths.kind(1001, 0), paths.rtt_ns(1001, 0), paths.ecn(1001, 0))
    paths.on_mark(1001, 0, True)
    assert 2**20 >> 4 == paths.ecn(1001, 0)
    assert BASE_NS == paths.rtt_ns(1001, 0)
    paths.on_rtt(1001, 0, 70_000)
    assert 70_000 == paths.rtt_ns(1001, 0)


def test_the_base_rtt_is_learnt_if_it_is_not_known():
    """The smallest one of all paths to the place."""
    paths = known(base_rtt_ns=0)
    assert 0 == paths.rtt_ns(0, 0)
    paths.on_rtt(0, 0, 90_000)
    paths.on_rtt(0, 1, 50_000)
    paths.on_rtt(0, 2, 95_000)
    assert 50_000 == paths.rtt_ns(0, 3)
    sense(paths, 0, 50_000 + 120_010, 1.0)
    assert CONGESTED == paths.kind(0, 0)


def test_more_than_three_timeouts_and_no_acknowledgment_are_a_failure():
    """Of this pair of hosts; an acknowledgment in between begins anew. It passes."""
    paths = known(failed_ns=5000)
    here, there = HermesHost(settings_of(failed_ns=5000), paths, 4), HermesHost(settings_of(), paths, 4)
    assert [False] * 3 == [here.on_feedback(0, TIMEOUT, 2) for _ in range(3)]
    here.on_feedback(0, ACK, 2)
    assert [False] * 3 == [here.on_feedback(0, TIMEOUT, 2) for _ in range(3)]
    assert GOOD == here.kind(0, 2)
    assert here.on_feedback(100, TIMEOUT, 2)
    assert (FAILED, FAILED, GOOD) == (here.kind(100, 2), here.kind(5099, 2), here.kind(5100, 2))
    assert (GOOD, GOOD) == (there.kind(100, 2), here.kind(100, 1))


def test_more_than_one_percent_of_retransmissions_are_a_failure():
    """Of all pairs, judged when 10 ms are over; a congested path may lose, and few packets tell nothing."""

    def judged(sent: int, lost: int, *, congested: bool = False) -> int:
        paths = known(stale_ns=100 * MS)
        host = HermesHost(settings_of(), paths, 4)
        paths.on_frame(0, 0, 1000)  # an interval begins
        for _ in range(sent - 1):
            paths.on_frame(1, 0, 1000)
        for number in range(lost):
            host.on_feedback(1, NACK if number % 2 else TIMEOUT, 0)
            host.on_feedback(1, ACK_ECN, 0)
        if congested:
            sense(paths, 0, HIGH_NS + 10_000, 1.0, now_ns=1)
        paths.on_frame(10 * MS - 1, 1, 1000)
        assert FAILED != host.kind(10 * MS - 1, 0)
        paths.on_frame(10 * MS, 1, 1000)
        return host.kind(10 * MS, 0)

    assert [FAILED, False, False] == [
        judged(199, 2),
        judged(200, 2) == FAILED,
        judged(99, 50) == FAILED,
    ]
    assert FAILED == judged(100, 2)
    assert CONGESTED == judged(100, 50, congested=True)


def test_a_failure_by_losses_passes():
    """And a new interval has to show it again."""
    paths = known(failed_ns=5 * MS)
    for number in range(100):
        paths.on_frame(number, 0, 1000)
        paths.on_lost(0)
    paths.on_frame(10 * MS, 1, 1000)
    assert (FAILED, GOOD) == (paths.kind(15 * MS - 1, 0), paths.kind(15 * MS, 0))
    paths.on_frame(20 * MS, 1, 1000)
    assert GOOD == paths.kind(20 * MS, 0)


def test_a_meter_shows_a_steady_rate():
    """As the bytes of its averaging time; every eighth of that it forgets 1/8 of them."""
    meter = RateMeter(160_000)
    for now_ns in range(0, 2_000_000, 1000):
        meter.add(now_ns, 1250)  # 10 Gb/s
    before = meter.read(1_999_999)
    assert 200_000 == pytest.approx(before, rel=0.001)
    assert before - -(-before // 8) == meter.read(2_000_000)
    assert 0 == meter.read(10**12)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 9000)), max_size=40))
def test_reading_a_meter_changes_nothing(steps):
    """However often it is read."""
    read, unread, now_ns = RateMeter(160_000), RateMeter(160_000), 0
    for later_ns, count in steps:
        now_ns += later_ns
        for time_ns in range(now_ns - later_ns, now_ns, 7000):
            read.read(time_ns)
        read.add(now_ns, count)
        unread.add(now_ns, count)
        assert unread.read(now_ns) == read.read(now_ns)
