# SPDX-License-Identifier: Apache-2.0
"""DCQCN's rate against an oracle, and when receivers send CNPs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
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
        st.sampled_from(["cnp", "wait", "wait", "wait", "sent", "sent", "sent"]),
        st.integers(60, 10_000_000),
    ),
    max_size=120,
)
CUTS = [(0, "cnp", 0)] * 4
TIMER, COUNTER = [(T_NS, "wait", 0)], [(0, "sent", 10 * MB)]


@settings(max_examples=100)
@given(line=st.sampled_from([10**9, 10 * 10**9, LINE, 400 * 10**9]), events=EVENTS)
@example(LINE, CUTS + TIMER * 9 + COUNTER * 9)  # fast recovery, additive increase, hyper increase
@example(LINE, CUTS + COUNTER * 9 + TIMER * 9)
@example(LINE, [(0, "cnp", 0), (0, "sent", 10 * MB - 1), (0, "sent", 1)])
@example(
    LINE, [*CUTS[:1], *TIMER * 4, (T_NS - 1, "cnp", 0), (T_NS - 1, "wait", 0), *TIMER * 8]
)  # all begins anew
@example(LINE, [*CUTS[:1], *TIMER * 40, (T_NS, "cnp", 0)])  # at line rate again
@example(10**9, CUTS * 5)  # the least rate
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
            assert float(oracle.alpha) == pytest.approx(dcqcn.alpha / ONE, abs=1e-6)
        elif what == "sent":
            dcqcn.on_sent(frame_bytes)
            oracle.sent(frame_bytes)
        assert float(oracle.rc) == pytest.approx(dcqcn.rate_bps, abs=line * 1e-6 + 3)
        assert float(oracle.rt) == pytest.approx(dcqcn.target_bps, abs=line * 1e-6 + 3)
        assert 10**7 <= dcqcn.rate_bps <= dcqcn.target_bps <= line
        assert dcqcn.deadline_ns == (NEVER if oracle.rate_timer_ns is None else oracle.rate_timer_ns)


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
