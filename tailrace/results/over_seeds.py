# SPDX-License-Identifier: Apache-2.0
"""The runs of a scheme in a case, one a seed, as one: means, percentiles of all their flows, intervals,
ratios.

A mean is that of the seeds' own values. A percentile is that of the flows of all seeds together, nearest
rank. Schemes are compared seed by seed, since a seed gives each of them the same traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tailrace.results.intervals import (
    Estimate,
    Statistic,
    difference_of,
    estimate,
    mean_of,
    percentile_of,
    ratio_of,
    why_none,
)
from tailrace.results.rows import FlowRow, measured_rows
from tailrace.results.statistics import mean, percentile

if TYPE_CHECKING:
    from tailrace.results.result import Result


@dataclass(frozen=True)
class Measure:
    """What each seed gave: one value, whose mean counts, or with `percent` those of its flows, whose
    percentile does.
    """

    of_seeds: tuple[tuple[float, ...], ...]
    percent: int | None = None

    @cached_property
    def value(self) -> float:
        """Over all seeds."""
        every = [value for own in self.of_seeds for value in own]
        if self.percent is not None:
            return percentile(every, self.percent)
        return every[0] if len(every) == 1 else mean(every)

    @cached_property
    def statistic(self) -> Statistic:
        """The same of any choice of seeds."""
        if self.percent is None:
            return mean_of([value for (value,) in self.of_seeds])
        return percentile_of(self.of_seeds, self.percent)

    def only(self, places: Iterable[int]) -> Measure:
        """The same of some seeds, by their places."""
        places = list(places)
        if places == list(range(len(self.of_seeds))):
            return self
        return Measure(tuple(self.of_seeds[place] for place in places), self.percent)

    def estimate(self) -> Estimate:
        """Over all seeds, with its interval, which does not reach below 0 where no value does."""
        seeds = len(self.of_seeds)
        return Estimate(self.value) if why_none(seeds) else _bounded(estimate(self.statistic, seeds), self)


@dataclass(frozen=True)
class Group:
    """The runs of a scheme in a case, one a seed."""

    case: str
    label: str
    results: tuple[Result, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of its runs, in their order."""
        return tuple(result.summary.seed for result in self.results)

    @property
    def complete(self) -> bool:
        """Whether every flow of every run finished."""
        return all(result.complete for result in self.results)

    @cached_property
    def flows(self) -> int:
        """The finished flows that count, of all its runs."""
        return sum(row.fct_ns is not None for result in self.results for row in measured_rows(result.rows))

    def mean(self, of: Callable[[Result], float | None]) -> Measure | None:
        """The mean of a value of each run; None where a run has none."""
        values = [value for result in self.results if (value := of(result)) is not None]
        return Measure(tuple((value,) for value in values)) if len(values) == len(self.results) else None

    def percentile(self, of: Callable[[FlowRow], float | None], percent: int) -> Measure | None:
        """A percentile of a value of the measured flows that have one; None where a run has no such flow.

        100 is the mean over the seeds of the largest of each: of all together it would grow with the seeds.
        """
        found = tuple(
            tuple(value for row in measured_rows(result.rows) if (value := of(row)) is not None)
            for result in self.results
        )
        if not all(found):
            return None
        return Measure(tuple((max(own),) for own in found)) if percent == 100 else Measure(found, percent)


def groups(results: Iterable[Result]) -> list[Group]:
    """The runs by case and label, in the order in which these first come."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.case, result.label), []).append(result)
    return [Group(case, label, tuple(own)) for (case, label), own in found.items()]


def flows_of(found: Sequence[Group]) -> int:
    """The finished flows that count, over all seeds, of the group that has the fewest."""
    return min((group.flows for group in found), default=0)


def ratio(ours: Measure | None, base: Measure | None, places: Sequence[tuple[int, int]]) -> Estimate | None:
    """One over the other, of the same seeds: `places` has the place of each in both; None without a ratio."""
    pair = _paired(ours, base, places)
    if pair is None or not pair[1].value:
        return None
    if why_none(len(places)):
        return Estimate(pair[0].value / pair[1].value)
    return _bounded(estimate(ratio_of(pair[0].statistic, pair[1].statistic), len(places)), *pair)


def is_worse(ours: Measure | None, best: Measure | None, places: Sequence[tuple[int, int]]) -> bool:
    """Whether one is larger than the other beyond the interval of their difference."""
    pair = _paired(ours, best, places)
    if pair is None:
        return True
    low = estimate(difference_of(pair[0].statistic, pair[1].statistic), len(places)).low
    return low is None or low > 0


def places_of(ours: Group, base: Group) -> tuple[tuple[int, int], ...]:
    """The seeds that two groups have in common, each by its places in both."""
    at = {seed: place for place, seed in enumerate(base.seeds)}
    return tuple((place, at[seed]) for place, seed in enumerate(ours.seeds) if seed in at)


def _bounded(found: Estimate, *of: Measure) -> Estimate:
    if any(value < 0 for measure in of for own in measure.of_seeds for value in own):
        return found
    return found.not_negative()


def _paired(
    ours: Measure | None, base: Measure | None, places: Sequence[tuple[int, int]]
) -> tuple[Measure, Measure] | None:
    if ours is None or base is None or not places:
        return None
    return ours.only(place for place, _ in places), base.only(place for _, place in places)
