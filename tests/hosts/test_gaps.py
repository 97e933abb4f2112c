# SPDX-License-Identifier: Apache-2.0
"""The histogram of gaps against sorted lists, on distributions that are made to mislead it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.gaps.histogram import MOST_BINS, MOST_GAP_NS, PERMYRIAD, GapHistogram, bin_of, low_ns

ERROR = Fraction(1, 128)
PERCENTILES = (5_000, 9_000, 9_750, 9_900, 9_990, 9_999)


def least_kept(gaps: list[int], permyriad: int) -> int:
    """The least number that no more than the rest of the gaps reach: what a quantile is, by its definition."""
    rest = Fraction(len(gaps) * (PERMYRIAD - permyriad), PERMYRIAD)
    candidates: list[int] = sorted({0, *(gap + 1 for gap in gaps), *gaps})
    return next(candidate for candidate in candidates if sum(gap >= candidate for gap in gaps) <= rest)


def histogram(gaps: list[int]) -> GapHistogram:
    made = GapHistogram()
    for gap in gaps:
        made.add(gap)
    return made


def check(gaps: list[int]) -> None:
    """All that the histogram promises."""
    made = histogram(gaps)
    assert len(gaps) == made.count == sum(count for _, count in made.bins())
    for permyriad in PERCENTILES:
        exact, quantile_ns = least_kept(gaps, permyriad), made.quantile_ns(permyriad)
        assert exact <= quantile_ns <= Fraction(exact) * (1 + ERROR)
        assert exact == quantile_ns or quantile_ns > 256
        # whatever the error, the share is kept
        assert sum(gap >= quantile_ns for gap in gaps) * PERMYRIAD <= len(gaps) * (PERMYRIAD - permyriad)


@settings(max_examples=200)
@given(st.integers(0, MOST_GAP_NS))
def test_bins_are_narrow_and_without_holes(gap):
    """A gap is in its bin, which is at most 1/128 as wide as it is long, and the next bin begins behind it."""
    number = bin_of(gap)
    low, following = low_ns(number), low_ns(number + 1)
    assert low <= gap < following
    assert following - low <= max(Fraction(1), low * ERROR)
    assert number == bin_of(low) == bin_of(following - 1)
    assert 0 <= number < MOST_BINS


def test_the_first_bins_hold_one_gap_each_and_the_last_ends_where_gaps_end():
    """Their edges, one after the other."""
    assert (
        list(range(256)) == [low_ns(number) for number in range(256)] == [bin_of(gap) for gap in range(256)]
    )
    assert [256, 258] == [low_ns(256), low_ns(257)]
    assert MOST_BINS - 1 == bin_of(MOST_GAP_NS)
    assert MOST_GAP_NS + 1 == low_ns(MOST_BINS)


@settings(max_examples=150)
@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 10**6), st.integers(0, 2**50)), min_size=1))
def test_any_gaps(gaps):
    """The promise, for whatever gaps."""
    check(gaps)


EDGES = [low_ns(number) for number in range(0, 3_000, 7)]
ADVERSARIAL = {
    "constant": [84] * 1000,
    "constant and long": [70_001] * 1000,
    "two spikes": [84] * 985 + [8_500] * 15,
    "two spikes, the rest exactly": [84] * 990 + [8_500] * 10,
    "a spike just below the rest": [84] * 980 + [8_499] * 20,
    "exponentially growing": [1 << power for power in range(60)] * 5,
    "sorted down": list(range(5_000, 1, -7)),
    "all at the edges of bins": EDGES,
    "all just below the edges": [max(0, edge - 1) for edge in EDGES],
    "one": [12_345],
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_distributions(name):
    """The promise, where a sketch might go wrong."""
    check(ADVERSARIAL[name])


def test_gaps_of_any_number_and_length_take_bounded_room():
    """What is longer than the longest gap counts as that, and there are never more bins than promised."""
    made = histogram([MOST_GAP_NS + 5, 1 << 80, *(1 << power for power in range(70))])
    assert MOST_GAP_NS + 1 >= made.quantile_ns(9_999) > MOST_GAP_NS * (1 - ERROR)
    for _ in range(3):
        for number in range(MOST_BINS):
            made.add(low_ns(number))
    assert len(made.bins()) == MOST_BINS
    assert 3 * MOST_BINS + 72 == made.count


def test_clear():
    """As new."""
    made = histogram([5, 6, 7])
    made.clear()
    assert (0, [], 0) == (made.count, made.bins(), made.quantile_ns(9_900))
    made.add(9)
    assert [(9, 1)] == made.bins()
