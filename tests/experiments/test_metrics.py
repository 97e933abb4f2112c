# SPDX-License-Identifier: Apache-2.0
"""Statistics: by hand, and against the definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.results.statistics import cumulative, mean, percentile

NUMBERS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=60)


@given(NUMBERS, st.integers(1, 100))
def test_percentile_is_the_smallest_that_enough_do_not_exceed(values: list[int], percent: int) -> None:
    """Its definition, for any values."""
    smallest = percentile(values, percent)
    enough = [
        value for value in values if sum(other <= value for other in values) * 100 >= percent * len(values)
    ]
    assert smallest == min(enough)


@given(NUMBERS, st.integers(0, 10))
def test_cumulative_ends_at_the_share_that_finished(values: list[int], unfinished: int) -> None:
    """Rising on both axes; the last share is that of the values among all."""
    x, y = cumulative(values, len(values) + unfinished)
    assert x == sorted(x)
    assert y == sorted(y)
    assert y[-1] == pytest.approx(len(values) / (len(values) + unfinished))


def test_nothing_measured() -> None:
    """There is no percentile and no mean of nothing, and no percentile beyond 100."""
    for call in (lambda: percentile([], 50), lambda: mean([]), lambda: percentile([1], 101)):
        with pytest.raises(ValueError):
            call()
