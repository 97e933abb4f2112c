# SPDX-License-Identifier: Apache-2.0
"""Means and percentiles over seeds with their intervals, against the same by hand."""

from __future__ import annotations

from math import exp
from statistics import stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.papers.measure.sizes import PooledPercentile
from tailrace.results.estimates import (
    FEWEST_SEEDS,
    Estimate,
    SeedValues,
    difference_of,
    estimate,
    mean_of,
    ratio_of,
    why_none,
)
from tailrace.results.statistics import (
    P95_FLOWS,
    P99_FLOWS,
    mean,
    percentile,
    tail_name,
    tail_note,
    tail_percent,
)

flows = st.lists(st.integers(0, 30).map(float), min_size=1, max_size=12)


@given(st.lists(flows, min_size=1, max_size=4), st.integers(1, 100), st.data())
def test_percentiles_of_choices(groups: list[list[float]], percent: int, data: st.DataObject) -> None:
    """The nearest rank of all values of the seeds of a choice."""
    places = st.lists(st.integers(0, len(groups) - 1), min_size=3, max_size=3)
    draws = data.draw(st.lists(places, min_size=1, max_size=5))
    percentiles = PooledPercentile.of(tuple(map(tuple, groups)), percent).statistic(np.array(draws))
    expected = [percentile([value for place in draw for value in groups[place]], percent) for draw in draws]
    assert percentiles.tolist() == expected


@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=6), st.data())
def test_means_of_choices(values: list[float], data: st.DataObject) -> None:
    draw = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=4, max_size=4))
    drawn = [values[place] for place in draw]
    assert float(mean_of(values)(np.array(draw))) == pytest.approx(mean(drawn))
    other = mean_of(values[::-1])
    expected = mean([values[::-1][place] for place in draw])
    assert float(ratio_of(mean_of(values), other)(np.array(draw))) == pytest.approx(mean(drawn) / expected)
    assert float(difference_of(mean_of(values), other)(np.array(draw))) == pytest.approx(
        mean(drawn) - expected, abs=1e-3
    )


def test_of_a_mean_it_is_that_of_students_t() -> None:
    """By hand: the mean, and 2.776 standard errors of five values on either side."""
    values = [3.0, 1.0, 4.0, 1.5, 9.0]
    aside = 2.776445 * stdev(values) / 5**0.5
    interval = estimate(mean_of(values), 5)
    assert interval.value == mean(values)
    assert interval.ends == pytest.approx((mean(values) - aside, mean(values) + aside), rel=1e-4)
    metric = SeedValues(tuple(values)).estimate()
    assert metric.ends == pytest.approx((max(0, mean(values) - aside), mean(values) + aside), rel=1e-4)


@given(st.lists(st.floats(1, 1e3), min_size=3, max_size=6), st.floats(0.1, 10))
def test_pairs(values: list[float], times: float) -> None:
    """However much seeds differ: what each has so many times is so many times, without a doubt."""
    interval = estimate(ratio_of(mean_of([times * value for value in values]), mean_of(values)), len(values))
    assert interval.ends == pytest.approx((times, times), rel=1e-6)


def test_an_interval_holds_the_truth_as_often_as_is_said() -> None:
    """A mean, a ratio of pairs, and a p99 of all flows: estimates.py has these shares."""
    rng = np.random.default_rng(3)
    for seeds in (3, 5, 10):
        held = {"mean": 0, "ratio": 0, "p99": 0}
        for _ in range(300):
            ours, traffic, base = (
                rng.lognormal(0, 0.1, seeds),
                rng.lognormal(0, 0.3, seeds),
                rng.lognormal(0, 0.1, seeds),
            )
            flows = np.exp(rng.normal(0, 1, (seeds, 400)) + rng.normal(0, 0.2, (seeds, 1)))
            of_base = mean_of(list(traffic * base))
            for name, truth, statistic in (
                ("mean", exp(0.3**2 / 2), mean_of(list(traffic))),
                ("ratio", 1, ratio_of(mean_of(list(traffic * ours)), of_base)),
                ("p99", exp(2.3263 * 1.04**0.5), PooledPercentile.of(tuple(map(tuple, flows)), 99).statistic),
            ):
                low, high = estimate(statistic, seeds).ends or (0, 0)
                held[name] += low <= truth <= high
        shares = {name: count / 300 for name, count in held.items()}
        assert shares == pytest.approx({"mean": 0.935, "ratio": 0.945, "p99": 0.91}, abs=0.045), seeds


def test_no_interval() -> None:
    """Of few seeds; and of what is no number."""
    few = FEWEST_SEEDS - 1
    assert why_none(few) == "no intervals: they need 3 seeds"
    assert SeedValues((1.0,) * few).estimate() == Estimate(1.0)
    assert SeedValues((2.0,) * FEWEST_SEEDS).estimate() == Estimate(2.0, 2.0, 2.0)
    nothing = ratio_of(mean_of([1.0] * 5), mean_of([0.0] * 5))
    assert estimate(nothing, 5).ends is None
    assert PooledPercentile.of(((), *((1.0,),) * 5), 50).estimate().value == 1.0


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
