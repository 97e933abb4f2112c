# SPDX-License-Identifier: Apache-2.0
"""Means and percentiles over seeds with their intervals, against the same by hand."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.experiments.results.intervals import (
    FEWEST_SEEDS,
    Estimate,
    difference_of,
    estimate,
    mean_of,
    percentile_of,
    ratio_of,
    why_none,
)
from tailrace.experiments.results.over_seeds import Measure
from tailrace.experiments.results.statistics import (
    P95_FLOWS,
    P99_FLOWS,
    mean,
    percentile,
    tail_name,
    tail_note,
    tail_percent,
)

flows = st.lists(st.integers(0, 30).map(float), min_size=1, max_size=12)


@settings(derandomize=True, deadline=None)
@given(st.lists(flows, min_size=1, max_size=4), st.integers(1, 100), st.data())
def test_percentiles_of_draws(groups: list[list[float]], percent: int, data: st.DataObject) -> None:
    """Of any draw: the nearest rank of all values of the seeds in it, those drawn twice twice."""
    places = st.lists(st.integers(0, len(groups) - 1), min_size=3, max_size=3)
    draws = data.draw(st.lists(places, min_size=1, max_size=5))
    found = percentile_of(groups, percent)(np.array(draws))
    expected = [percentile([value for place in draw for value in groups[place]], percent) for draw in draws]
    assert found.tolist() == expected


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=6), st.data())
def test_means_of_draws(values: list[float], data: st.DataObject) -> None:
    draw = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=4, max_size=4))
    drawn = [values[place] for place in draw]
    assert float(mean_of(values)(np.array(draw))) == pytest.approx(mean(drawn))
    other = mean_of(values[::-1])
    expected = mean([values[::-1][place] for place in draw])
    assert float(ratio_of(mean_of(values), other)(np.array(draw))) == pytest.approx(mean(drawn) / expected)
    assert float(difference_of(mean_of(values), other)(np.array(draw))) == pytest.approx(
        mean(drawn) - expected, abs=1e-3
    )


def test_an_interval_is_that_of_all_draws() -> None:
    """Of five seeds there are 3125 draws: the ends are their percentiles, but for chance."""
    values = [3.0, 1.0, 4.0, 1.5, 9.0]
    every = sorted(mean(draw) for draw in itertools.product(values, repeat=5))
    found = Measure(tuple((value,) for value in values)).estimate()
    assert found.value == mean(values)
    assert found.low is not None and found.high is not None
    rank_of = [sum(one <= end for one in every) / len(every) for end in (found.low, found.high)]
    assert rank_of == pytest.approx([0.025, 0.975], abs=0.012)
    assert Measure(tuple((value,) for value in values)).estimate() == found, (
        "the draws have a seed of their own"
    )


def test_an_interval_holds_the_mean_as_often_as_is_said() -> None:
    """Which is less than its name says where seeds are few: intervals.py has these shares."""
    rng = random.Random(3)
    for seeds, share in ((5, 0.82), (10, 0.91)):
        held = 0
        for _ in range(150):
            values = [rng.lognormvariate(0, 0.3) for _ in range(seeds)]
            low, high = estimate(mean_of(values), seeds).ends or (0, 0)
            held += low <= 1.046 <= high
        assert held / 150 == pytest.approx(share, abs=0.07)


def test_no_interval() -> None:
    """Of few seeds; and what no draw has is no end of one."""
    few = FEWEST_SEEDS - 1
    assert why_none(few) == "no intervals: they take 5 seeds"
    assert Measure(((1.0,),) * few).estimate() == Estimate(1.0)
    assert Measure(((2.0,),) * FEWEST_SEEDS).estimate() == Estimate(2.0, 2.0, 2.0)
    nothing = ratio_of(mean_of([1.0] * 5), mean_of([0.0] * 5))
    assert estimate(nothing, 5).ends is None
    assert Measure(((), *((1.0,),) * 5), 50).estimate().value == 1.0


@pytest.mark.parametrize(
    ("count", "name"),
    [(P99_FLOWS, "p99"), (P99_FLOWS - 1, "p95"), (P95_FLOWS, "p95"), (P95_FLOWS - 1, "max"), (0, "max")],
)
def test_the_tail_of_so_many_flows(count: int, name: str) -> None:
    """One in ten flows lies beyond it, or it says that it is the largest."""
    assert tail_name(tail_percent(count)) == name
    assert (tail_note(count) == "") == (name == "p99")
    assert count == P99_FLOWS or f"{count:,}" in tail_note(count)
    assert tail_percent(count) == 100 or count * (100 - tail_percent(count)) >= 10 * 100
