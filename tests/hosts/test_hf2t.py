# SPDX-License-Identifier: Apache-2.0
"""HF2T's parts one by one: T and when it is learnt anew, alpha at its corners, x, and settings that cannot be."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.gaps.hf2t import GO, UNKNOWN, Learner, Shaper
from tailrace.hosts.options.hf2t import LEAST_TRAIN_GAPS, TAIL_GAPS, Hf2tConfig, train_gaps

FRAME_BYTES = 1082
LINK_BPS = 100_000_000_000
THRESHOLD_NS = 8_500
REACH_NS = THRESHOLD_NS + 2  # a tick and a ns more
T_NS = 1_000
WINDOW = 1_000


def config(**settings_) -> Hf2tConfig:
    usual = {
        "threshold_ns": THRESHOLD_NS,
        "percentile": 9_900,
        "min_thr": 20,
        "max_thr": 80,
        "train_gaps": WINDOW,
    }
    return Hf2tConfig(**{**usual, **settings_})


class Flow:
    """One flow whose packets could go at chosen times after the last one."""

    def __init__(self, settings_: Hf2tConfig, learner: Learner | None = None) -> None:
        self.shaper = Shaper(settings_, learner or Learner(settings_), LINK_BPS)
        self.last_ns = 0
        assert GO == self.shaper.hold_ns(0, -1, FRAME_BYTES)

    def send(self, gap_ns: int) -> int:
        """The gap that a packet leaves after."""
        could_ns = self.last_ns + gap_ns
        until_ns = self.shaper.hold_ns(could_ns, self.last_ns, FRAME_BYTES)
        if until_ns != GO:
            assert GO == self.shaper.hold_ns(until_ns, self.last_ns, FRAME_BYTES)
        else:
            until_ns = could_ns
        was_ns, self.last_ns = self.last_ns, until_ns
        return until_ns - was_ns

    def send_until(self, x: int) -> None:
        """Packets one by one at the link's rate, none of which is held."""
        while self.shaper.x < x:
            assert 1 == self.send(1)


# ---- alpha ----


@pytest.mark.parametrize(
    ("x", "alpha"),
    [
        (1, Fraction(20)),
        (2, Fraction(10)),
        (19, Fraction(20, 19)),
        (20, Fraction(1)),
        (21, Fraction(1)),
        (79, Fraction(1)),
        (80, Fraction(1)),
        (81, Fraction(80, 81)),
        (160, Fraction(1, 2)),
        (400, Fraction(1, 5)),
    ],
)
def test_alpha(x, alpha):
    """Eq. 1 at, below and above both thresholds: the first gap that is stretched is T * alpha, rounded up."""
    settings_ = config(t_ns=300)
    least_ns = -(-300 * alpha.numerator // alpha.denominator)
    for gap_ns in (least_ns - 1, least_ns, least_ns + 1):
        flow = Flow(settings_)
        flow.send_until(x)
        assert (REACH_NS if gap_ns >= least_ns else gap_ns) == flow.send(gap_ns)


def test_without_alpha_t_is_t():
    """No Dynamic T: after any number of packets (HF2T §5.1)."""
    for x in (1, 2, 20, 80, 500):
        flow = Flow(config(t_ns=300, dynamic=False))
        flow.send_until(x)
        assert 299 == flow.send(299)
        assert REACH_NS == flow.send(300)


def test_equal_thresholds():
    """alpha is 1 at exactly one x."""
    settings_ = config(t_ns=300, min_thr=10, max_thr=10)
    for x, least_ns in ((5, 600), (10, 300), (20, 150)):
        flow = Flow(settings_)
        flow.send_until(x)
        assert least_ns - 1 == flow.send(least_ns - 1)
        flow = Flow(settings_)
        flow.send_until(x)
        assert REACH_NS == flow.send(least_ns)


def test_x_counts_from_the_last_stretched_gap():
    """The packet behind it is the first; gaps that are long by themselves do not count (HF2T §4.3)."""
    flow = Flow(config(t_ns=300))
    flow.send_until(30)
    assert REACH_NS == flow.send(300)
    assert 1 == flow.shaper.x
    for x in range(2, 12):
        assert 20_000 == flow.send(20_000)
        assert x == flow.shaper.x
    # 11 packets: alpha is 20/11, though a flowlet has just begun
    assert 545 == flow.send(545)
    assert REACH_NS == flow.send(546)
    assert (2, 10) == (flow.shaper.stretched, flow.shaper.natural)
    assert 2 * REACH_NS - 300 - 546 == flow.shaper.stretched_ns


def test_a_flow_s_first_packet_is_never_held():
    """Nor is anything of a flow of one packet."""
    shaper = Shaper(config(t_ns=1), Learner(config(t_ns=1)), LINK_BPS)
    assert GO == shaper.hold_ns(10**9, -1, FRAME_BYTES)
    assert (0, 0, 0, 1) == (shaper.stretched, shaper.stretched_ns, shaper.natural, shaper.x)


def test_the_threshold_itself_and_beyond():
    """A gap of the threshold is none for a switch, so it is stretched; one ns more is."""
    for gap_ns, left_ns in ((THRESHOLD_NS, REACH_NS), (THRESHOLD_NS + 1, THRESHOLD_NS + 1), (10**9, 10**9)):
        flow = Flow(config(t_ns=1, dynamic=False))
        assert left_ns == flow.send(gap_ns)
        assert (gap_ns <= THRESHOLD_NS, gap_ns > THRESHOLD_NS) == (flow.shaper.stretched, flow.shaper.natural)


def test_a_slow_clock_of_the_switch():
    """With ticks of 1 us a gap is certain to be longer than 9 ticks only if it is 10 us long."""
    flow = Flow(config(t_ns=300, dynamic=False, threshold_ns=9_000, tick_ns=1_000))
    assert 10_001 == flow.send(300)
    # for the switch's threshold that is long enough, so it is left alone
    assert 9_001 == flow.send(9_001)


def test_a_packet_that_is_not_sent_any_more_leaves_the_gap_open():
    """What was acknowledged meanwhile: the gap goes on, and is judged when the next packet could go."""
    flow = Flow(config(t_ns=300, dynamic=False))
    assert REACH_NS == flow.shaper.hold_ns(500, 0, FRAME_BYTES)
    flow.shaper.forget()
    assert GO == flow.shaper.hold_ns(20_000, 0, FRAME_BYTES)
    assert (0, 0, 1) == (flow.shaper.stretched, flow.shaper.stretched_ns, flow.shaper.natural)


def test_a_held_packet_that_goes_later_than_it_might():
    """Something else held it, too: only what the shaper added counts."""
    flow = Flow(config(t_ns=300, dynamic=False))
    assert REACH_NS == flow.shaper.hold_ns(500, 0, FRAME_BYTES)
    assert GO == flow.shaper.hold_ns(50_000, 0, FRAME_BYTES)
    assert (1, REACH_NS - 500, 0) == (flow.shaper.stretched, flow.shaper.stretched_ns, flow.shaper.natural)


def test_another_packet_takes_the_place_of_the_held_one():
    """A shorter one, for a NAK has come meanwhile: it waits longer, for its last bit leaves sooner."""
    flow = Flow(config(t_ns=300, dynamic=False))
    first_ns = flow.shaper.hold_ns(500, 0, FRAME_BYTES)
    second_ns = flow.shaper.hold_ns(600, 0, 82)
    assert 80 + 1 == second_ns - first_ns
    assert GO == flow.shaper.hold_ns(second_ns, 0, 82)
    assert 1 == flow.shaper.stretched


# ---- T ----


def trained(gaps, **settings_) -> Learner:
    learner = Learner(config(**settings_))
    for gap_ns in gaps:
        learner.add(gap_ns)
    return learner


def test_nothing_is_held_before_t_is_known():
    """And with one gap more it is."""
    learner = trained(range(1, WINDOW))
    flow = Flow(config(), learner)
    assert UNKNOWN == learner.t_ns
    flow.send_until(WINDOW)
    assert 0 == flow.shaper.stretched
    assert (1, 992) == (learner.trainings, learner.t_ns)
    assert REACH_NS == flow.send(992)


def test_a_given_t_is_kept():
    """Nothing is learnt."""
    learner = trained([5] * 10 * WINDOW, t_ns=777)
    assert (777, 0) == (learner.t_ns, learner.trainings)


@pytest.mark.parametrize(("percentile", "t_ns"), [(9_900, 991), (9_750, 976), (5_000, 501), (9_999, 1_001)])
def test_t_is_the_percentile(percentile, t_ns):
    """Of 1..1000 in any order; gaps of T and more are the rest, or fewer."""
    gaps = random.Random(1).sample(range(1, 1_001), 1_000)
    trained_ns = trained(gaps, percentile=percentile).t_ns
    assert t_ns <= trained_ns <= t_ns * Fraction(129, 128)
    assert sum(gap >= trained_ns for gap in gaps) <= 1_000 * (10_000 - percentile) // 10_000


def test_equal_gaps_are_not_the_longest():
    """All gaps at the link's rate: T is beyond, so that without alpha none is stretched."""
    assert 85 == trained([84] * WINDOW).t_ns


def test_the_distribution_shifts():
    """Longer gaps, then shorter ones: T follows after two windows, and then stays."""
    rng = random.Random(2)

    def window(center: int) -> list[int]:
        return [rng.randint(center, 2 * center) for _ in range(WINDOW)]

    learner = trained(window(100))
    first_ns = learner.t_ns
    for center, twice in ((1_000, 2), (100, 3), (30_000, 4)):
        before_ns = learner.t_ns
        for gap_ns in window(center):
            learner.add(gap_ns)
        assert (before_ns, twice - 1) == (learner.t_ns, learner.trainings), "one window may be chance"
        for gap_ns in window(center):
            learner.add(gap_ns)
        assert twice == learner.trainings
        assert 1.9 * center < learner.t_ns <= 2.02 * center
        for _ in range(5):
            for gap_ns in window(center):
                learner.add(gap_ns)
        assert twice == learner.trainings, "it is what it was"
    assert first_ns < learner.t_ns


def test_a_shift_that_goes_back_at_once_is_none():
    """A window of other gaps now and then, and T stays."""
    learner = trained([100, 200] * (WINDOW // 2))
    before_ns = learner.t_ns
    for _ in range(6):
        for gap_ns in [5_000] * WINDOW + [100, 200] * (WINDOW // 2):
            learner.add(gap_ns)
    assert (before_ns, 1) == (learner.t_ns, learner.trainings)


@pytest.mark.parametrize(
    "gaps", [[84] * WINDOW, [84] * (WINDOW - 5) + [8_000] * 5, list(range(1, WINDOW + 1))]
)
def test_no_training_without_a_shift(gaps):
    """Also where fewer than the rest are beyond T, for so many are equally long."""
    learner = trained(gaps * 20)
    assert 1 == learner.trainings


@pytest.mark.parametrize(("share", "trainings"), [(1, 1), (2, 1), (3, 2)])
def test_how_many_gaps_beyond_t_are_too_many(share, trainings):
    """Twice the rest is not yet."""
    beyond = WINDOW // 100 * share
    windows = [list(range(1, WINDOW + 1))] + 2 * [[5] * (WINDOW - beyond) + [2_000] * beyond]
    assert trainings == trained([gap for window in windows for gap in window]).trainings


@pytest.mark.parametrize(("shorter", "trainings"), [(15, 1), (60, 1), (70, 2)])
def test_how_much_shorter_gaps_are_a_shift(shorter, trainings):
    """A sixteenth of T, where less than half of the rest is beyond it."""
    first = list(range(1, WINDOW + 1))
    second = [max(1, gap - shorter) for gap in first]
    learner = trained(first + second + second)
    assert trainings == learner.trainings


def test_without_retraining_t_stays():
    """Whatever comes."""
    learner = trained([100] * WINDOW + [5_000] * 10 * WINDOW, retrain=False)
    assert (101, 1) == (learner.t_ns, learner.trainings)


def test_gaps_of_0_leave_a_t():
    """T is never 0, which would stand for none."""
    learner = trained([0] * WINDOW)
    assert 1 == learner.t_ns


# ---- settings ----


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"percentile": 4_999}, "percentile is 4999, expected 5000..9999"),
        ({"percentile": 10_000}, "percentile is 10000, expected 5000..9999"),
        ({"min_thr": 0}, "min_thr is 0, expected more than 0"),
        ({"min_thr": 81}, "max_thr is 80, expected min_thr or more, that is 81"),
        ({"threshold_ns": 0}, "threshold_ns is 0, expected more than 0"),
        ({"tick_ns": 0}, "tick_ns is 0, expected more than 0"),
        ({"train_gaps": 99}, "train_gaps is 99, expected 100 or more"),
        ({"t_ns": 0}, "t_ns is 0, expected more than 0"),
        ({"spare_bytes": -1}, "spare_bytes is -1, expected 0 or more"),
        ({"margin_ns": -1}, "margin_ns is -1, expected 0 or more"),
    ],
)
def test_settings_that_make_no_sense(settings_, message):
    """One line that names the setting."""
    with pytest.raises(ConfigError, match=message):
        config(**settings_)


@pytest.mark.parametrize(
    ("percentile", "expected"), [(9_900, 10_000), (9_750, 4_000), (9_999, 1_000_000), (5_000, 200)]
)
def test_how_many_gaps_a_percentile_needs(percentile, expected):
    """So many that enough of them are beyond it."""
    assert expected == train_gaps(percentile) >= LEAST_TRAIN_GAPS
    assert TAIL_GAPS == expected * (10_000 - percentile) // 10_000
