# SPDX-License-Identifier: Apache-2.0
"""DCQCN's rate, line by line of its description, and against an oracle; and when receivers send CNPs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.codec.calls import NEVER
from tailrace.hosts.options.dcqcn import ADDITIVE_SHARE, HYPER_SHARE, DcqcnConfig
from tailrace.hosts.transport.dcqcn.cnp import CnpClock
from tailrace.hosts.transport.dcqcn.rate import ONE, DcqcnRate
from tests.hosts.dcqcn_oracle import Oracle

LINE = 40_000_000_000
US = 1000
T_NS = 55 * US
MB = 1_000_000


def rate(line_bps: int = LINE, **changes: Any) -> DcqcnRate:
    return DcqcnRate(DcqcnConfig(**changes), line_bps)


def times(dcqcn: DcqcnRate, first: int, last: int) -> list[int]:
    """The rate after each expiry of the timer from the first to the last one given; the CNP came at 0."""
    rates = []
    for number in range(first, last + 1):
        assert number * T_NS == dcqcn.deadline_ns
        dcqcn.on_time(number * T_NS)
        rates.append(dcqcn.rate_bps)
    return rates


def test_the_published_defaults():
    """Times, bytes and rates of the paper's deployment."""
    config = DcqcnConfig()
    assert (50_000, 55_000, 55_000) == (config.cnp_ns, config.alpha_ns, config.timer_ns)
    assert (1 / 256, 10_000_000, 5) == (config.gain, config.counter_bytes, config.recovery_steps)
    assert (40_000_000, 400_000_000) == (LINE // ADDITIVE_SHARE, LINE // HYPER_SHARE)
    assert (None, None) == (config.additive_bps, config.hyper_bps)


@pytest.mark.parametrize("line_bps", [10_000_000_000, 40_000_000_000, 100_000_000_000])
def test_the_way_back_takes_as_many_steps_at_any_rate(line_bps):
    """After a cut each rise is the same share of the link, whatever its rate is; numbers that are given stay."""
    dcqcn, given = rate(line_bps), rate(line_bps, additive_bps=40_000_000)
    for flow in (dcqcn, given):
        flow.on_cnp(0)
        flow.on_cnp(0)
    for number in range(1, 7):
        dcqcn.on_time(number * T_NS)
        given.on_time(number * T_NS)
    assert line_bps // 2 + line_bps // 1000 == dcqcn.target_bps
    assert line_bps // 2 + 40_000_000 == given.target_bps


def test_it_begins_at_line_rate():
    """No slow start, and no timer before a CNP."""
    dcqcn = rate()
    assert (LINE, LINE, NEVER, False) == (dcqcn.rate_bps, dcqcn.target_bps, dcqcn.deadline_ns, dcqcn.limited)
    dcqcn.on_sent(100 * MB)
    dcqcn.on_time(10**12)
    assert (LINE, NEVER) == (dcqcn.rate_bps, dcqcn.deadline_ns)


def test_the_first_cnp_halves_the_rate():
    """alpha is 1: RT = RC, RC = RC / 2, alpha stays 1."""
    dcqcn = rate()
    dcqcn.on_cnp(7)
    assert (LINE // 2, LINE, ONE, 7 + T_NS) == (
        dcqcn.rate_bps,
        dcqcn.target_bps,
        dcqcn.alpha,
        dcqcn.deadline_ns,
    )


def test_cuts_follow_alpha():
    """After m times K without a CNP alpha is (255/256)^m; the next CNP cuts by half of it, then adds g."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_time(2 * T_NS + 1)
    before = dcqcn.rate_bps
    dcqcn.on_cnp(2 * T_NS + 1)
    alpha = (255 / 256) ** 2
    assert before == dcqcn.target_bps
    assert before * (1 - alpha / 2) == pytest.approx(dcqcn.rate_bps, rel=1e-9)
    assert alpha * 255 / 256 + 1 / 256 == pytest.approx(dcqcn.alpha / ONE, rel=1e-8)


def test_alpha_falls_only_after_all_of_k():
    """A CNP within K, and one right after it, find alpha as it was."""
    for wait_ns, falls in ((54_999, 0), (55_000, 1), (109_999, 1), (110_000, 2)):
        dcqcn = rate()
        dcqcn.on_cnp(0)
        dcqcn.on_cnp(wait_ns)
        expected = (255 / 256) ** falls * 255 / 256 + 1 / 256
        assert expected == pytest.approx(dcqcn.alpha / ONE, abs=1e-8)


def test_five_fast_recoveries_then_additive_increase():
    """The way to RT is halved five times; then RT gains 40 Mb/s each time."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_cnp(0)
    # RT is 20 Gb/s, RC is 10 Gb/s
    assert (20_000_000_000, 10_000_000_000) == (dcqcn.target_bps, dcqcn.rate_bps)
    expected = [15.0e9, 17.5e9, 18.75e9, 19.375e9, 19.6875e9]
    assert expected == times(dcqcn, 1, 5)
    assert 20_000_000_000 == dcqcn.target_bps
    assert [(20.04e9 + 19.6875e9) / 2] == times(dcqcn, 6, 6)
    assert 20_040_000_000 == dcqcn.target_bps
    times(dcqcn, 7, 7)
    assert 20_080_000_000 == dcqcn.target_bps


def test_the_byte_counter_does_the_same():
    """Every 10 MB; the timer goes on beside it, and either of them ends fast recovery."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_sent(10 * MB - 1)
    assert LINE // 2 == dcqcn.rate_bps
    dcqcn.on_sent(1)
    assert LINE * 3 // 4 == dcqcn.rate_bps
    dcqcn.on_sent(40 * MB)
    dcqcn.on_sent(10 * MB)
    assert LINE == dcqcn.target_bps  # it cannot rise above the link's rate
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_cnp(0)
    dcqcn.on_sent(30 * MB)
    times(dcqcn, 1, 5)
    assert 20_000_000_000 == dcqcn.target_bps
    dcqcn.on_sent(10 * MB)
    assert 20_040_000_000 == dcqcn.target_bps


def test_hyper_increase_when_both_are_beyond_five():
    """min(T, BC) > F: 400 Mb/s each time; at equal to F still 40."""
    dcqcn = rate(100_000_000_000, additive_bps=40 * MB, hyper_bps=400 * MB)
    for _ in range(4):
        dcqcn.on_cnp(0)
    target = dcqcn.target_bps
    for _ in range(6):
        dcqcn.on_sent(10 * MB)
    assert target + 40 * MB == dcqcn.target_bps
    times(dcqcn, 1, 6)
    assert target + 7 * 40 * MB == dcqcn.target_bps
    times(dcqcn, 7, 7)
    assert target + 7 * 40 * MB + 400 * MB == dcqcn.target_bps
    dcqcn.on_sent(10 * MB)
    assert target + 7 * 40 * MB + 800 * MB == dcqcn.target_bps


def test_a_cnp_begins_everything_anew():
    """Timer, counter and both numbers of rises."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_sent(9 * MB)
    times(dcqcn, 1, 4)
    dcqcn.on_cnp(5 * T_NS - 1)
    assert 6 * T_NS - 1 == dcqcn.deadline_ns
    low = dcqcn.rate_bps
    dcqcn.on_sent(10 * MB - 1)
    assert low == dcqcn.rate_bps
    for number in range(5):
        dcqcn.on_time(6 * T_NS - 1 + number * T_NS)
        assert dcqcn.target_bps < LINE
    target = dcqcn.target_bps
    dcqcn.on_time(11 * T_NS - 1)
    assert target + 40 * MB == dcqcn.target_bps


def test_at_line_rate_again_the_timer_rests():
    """And the flow is not limited any more; alpha has gone on to fall at the next CNP."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    number = 0
    while dcqcn.limited:
        number += 1
        dcqcn.on_time(number * T_NS)
    # 20 Gb/s are less than 1 bit/s after 35 halvings
    assert (35, NEVER, LINE) == (number, dcqcn.deadline_ns, dcqcn.rate_bps)
    dcqcn.on_cnp(100 * T_NS)
    alpha = (255 / 256) ** 100
    assert LINE * (1 - alpha / 2) == pytest.approx(dcqcn.rate_bps, rel=1e-6)


def test_without_clamp_cnps_in_a_row_leave_the_target_alone():
    """A rise between them, by timer or counter, does not."""
    dcqcn = rate(clamp=False)
    for now_ns in (0, 50_000):
        dcqcn.on_cnp(now_ns)
    assert (LINE // 4, LINE) == (dcqcn.rate_bps, dcqcn.target_bps)
    for rise in (lambda: dcqcn.on_time(50_000 + T_NS), lambda: dcqcn.on_sent(10 * MB)):
        rise()
        before = dcqcn.rate_bps
        dcqcn.on_cnp(50_000 + T_NS)
        assert before == dcqcn.target_bps
        assert dcqcn.rate_bps < before


def test_no_cut_goes_below_the_least_rate():
    """10 Mb/s, or the link's if that is slower."""
    dcqcn = rate()
    for _ in range(100):
        dcqcn.on_cnp(0)
    assert (10 * MB, 10 * MB) == (dcqcn.rate_bps, dcqcn.target_bps)
    slow = rate(5 * MB)
    slow.on_cnp(0)
    assert (5 * MB, NEVER) == (slow.rate_bps, slow.deadline_ns)


def test_alpha_after_a_long_silence_is_about_nothing():
    """A cut is hardly one then, and takes no time."""
    dcqcn = rate()
    dcqcn.on_cnp(0)
    dcqcn.on_time(10**9)
    dcqcn.on_cnp(10**15)
    assert LINE - 10_000 < dcqcn.rate_bps < LINE


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 999, 17_000, 50_000, 54_999, 55_000, 400_000]),
        st.sampled_from(["cnp", "wait", "wait", "sent", "sent"]),
        st.integers(60, 9_999_999),
    ),
    max_size=120,
)


@settings(max_examples=100)
@given(line=st.sampled_from([10**9, 10 * 10**9, LINE, 400 * 10**9]), events=EVENTS)
def test_it_is_what_the_oracle_says(line, events):
    """To a few bits per second, for each event costs at most half of one by rounding, and none adds up."""
    dcqcn, oracle, now_ns = rate(line), Oracle(line), 0
    for later_ns, what, frame_bytes in events:
        now_ns += later_ns
        dcqcn.on_time(now_ns)
        oracle.until(now_ns)
        if what == "cnp":
            dcqcn.on_cnp(now_ns)
            oracle.cnp(now_ns)
        elif what == "sent":
            dcqcn.on_sent(frame_bytes)
            oracle.sent(frame_bytes)
        if what != "wait" or dcqcn.limited:
            assert float(oracle.rc) == pytest.approx(dcqcn.rate_bps, abs=line * 1e-6 + 3)
            assert float(oracle.rt) == pytest.approx(dcqcn.target_bps, abs=line * 1e-6 + 3)
        assert 10**7 <= dcqcn.rate_bps <= dcqcn.target_bps <= line


def test_a_cnp_at_once_and_then_one_in_each_50_us():
    """The end of a time without any mark is silent."""
    clock = CnpClock(50 * US)
    assert NEVER == clock.deadline_ns
    assert clock.on_marked(100)
    assert 50_100 == clock.deadline_ns
    assert [False, False] == [clock.on_marked(101), clock.on_marked(50_099)]
    assert not clock.on_time(50_099)
    assert clock.on_time(50_100)
    assert 100_100 == clock.deadline_ns
    assert not clock.on_time(100_100)
    assert NEVER == clock.deadline_ns
    assert clock.on_marked(100_101)


def test_a_mark_at_the_very_end_makes_one_cnp():
    """Whether the clock was looked at before or not."""
    clock = CnpClock(50)
    clock.on_marked(0)
    clock.on_marked(10)
    assert clock.on_marked(50)
    assert (100, False) == (clock.deadline_ns, clock.on_time(99))
    assert not clock.on_time(100)
    quiet = CnpClock(50)
    quiet.on_marked(0)
    assert quiet.on_marked(50)
    assert 100 == quiet.deadline_ns


@settings(max_examples=60)
@given(st.lists(st.integers(0, 60), max_size=60))
def test_no_two_cnps_within_the_time(gaps):
    """And every marked packet has one at its time or within the time after it."""
    clock, now_ns, marked, sent = CnpClock(50), 0, [], []
    for gap in gaps:
        while clock.deadline_ns <= now_ns + gap:
            due_ns = clock.deadline_ns
            if clock.on_time(due_ns):
                sent.append(due_ns)
        now_ns += gap
        marked.append(now_ns)
        if clock.on_marked(now_ns):
            sent.append(now_ns)
    while clock.deadline_ns != NEVER:
        due_ns = clock.deadline_ns
        if clock.on_time(due_ns):
            sent.append(due_ns)
    assert all(later - earlier >= 50 for earlier, later in itertools.pairwise(sent))
    assert all(any(0 <= time - mark <= 50 for time in sent) for mark in marked)
