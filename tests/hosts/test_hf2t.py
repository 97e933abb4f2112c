# SPDX-License-Identifier: Apache-2.0
"""HF2T's parts one by one: T and when it is learnt anew, alpha at its corners, and x."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tailrace.hosts.gaps.hf2t import GO, UNKNOWN, Learner, Shaper
from tailrace.hosts.options.hf2t import LEAST_TRAIN_GAPS, TAIL_GAPS, Hf2tConfig, train_gaps
from tests.hosts.hf2t_oracle import OracleLearner

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


UP = list(range(1, WINDOW + 1))


def beyond(count: int) -> list[int]:
    """A window of short gaps, but for so many."""
    return [5] * (WINDOW - count) + [2_000] * count


def shorter(by_ns: int) -> list[int]:
    return [max(1, gap_ns - by_ns) for gap_ns in UP]


@pytest.mark.parametrize(
    ("gaps", "settings_", "trainings"),
    [
        pytest.param([5] * 10 * WINDOW, {"t_ns": 777}, 0, id="T is given"),
        pytest.param([0] * WINDOW, {}, 1, id="gaps of 0, and T is never 0"),
        pytest.param(UP * 20, {}, 1, id="no shift"),
        pytest.param(beyond(5) * 20, {}, 1, id="fewer than the rest are beyond T"),
        pytest.param(
            ([100, 200] * (WINDOW // 2) + [5_000] * WINDOW) * 6, {}, 1, id="one window may be chance"
        ),
        pytest.param(UP + 2 * beyond(20), {}, 1, id="twice the rest beyond T"),
        pytest.param(UP + 2 * beyond(21), {}, 2, id="more than twice the rest beyond T"),
        pytest.param(UP + 2 * shorter(60), {}, 1, id="shorter by less than a sixteenth"),
        pytest.param(UP + 2 * shorter(70), {}, 2, id="shorter by more than a sixteenth"),
        pytest.param([100] * WINDOW + [5_000] * 10 * WINDOW, {"retrain": False}, 1, id="no retraining"),
    ],
)
def test_t_is_learnt_when_the_distribution_shifts(gaps, settings_, trainings):
    learner, oracle = trained(gaps, **settings_), OracleLearner(config(**settings_))
    for gap_ns in gaps:
        oracle.add(gap_ns)
    assert (oracle.t_ns, oracle.trainings, trainings) == (learner.t_ns, learner.trainings, oracle.trainings)


@pytest.mark.parametrize(
    ("percentile", "expected"), [(9_900, 10_000), (9_750, 4_000), (9_999, 1_000_000), (5_000, 200)]
)
def test_how_many_gaps_a_percentile_needs(percentile, expected):
    """So many that enough of them are beyond it."""
    assert expected == train_gaps(percentile) >= LEAST_TRAIN_GAPS
    assert TAIL_GAPS == expected * (10_000 - percentile) // 10_000
