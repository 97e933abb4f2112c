# SPDX-License-Identifier: Apache-2.0
"""Statistics over seeds: means with 95 % intervals, paired ratios, and what is not worse than the best.

A metric over seeds is the mean of the value of each run, of percentiles, too. Its interval is what would
have come of other seeds of the same kind of traffic: the mean is computed of all seeds and of all but one,
each left out in turn (the jackknife; Efron and Tibshirani 1993, chapter 11). How much these differ gives a
standard error, and Student's t, of one degree less than there are seeds, how many of them an interval takes
on either side. Of a mean that is the interval of every textbook. Ratios and differences are paired: a seed
gives every scheme the same traffic, so it is left out of both at once.

A `Statistic` takes an array of the numbers of seeds, of which the last axis is a choice of seeds, and gives a
value for each choice. It needs NumPy; without SciPy there are no intervals.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.experiments.plan.axes import CASE, SCHEME, Setting
from tailrace.results.metrics import measure, metrics, split_class
from tailrace.results.statistics import mean, tail_name, tail_percent

if TYPE_CHECKING:
    from tailrace.results.result import Result

RATIOS = ("fct_mean", "fct_p99")
"""Metrics that are compared with the first scheme; another tail may stand for p99."""

EXTRA = "intervals"
"""The extra of this package that has SciPy."""

FEWEST_SEEDS = 3
"""Of two, an interval takes 12.7 standard errors on either side, and says nothing."""

CONFIDENCE = 0.95

Statistic = Callable[[Any], Any]


class Estimate(msgspec.Struct, frozen=True):
    """A value over seeds, and its 95 % interval, where there is one."""

    value: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval."""
        if isinstance(self.low, UnsetType) or isinstance(self.high, UnsetType):
            return None
        return self.low, self.high

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return Estimate(self.value * factor, *(end * factor for end in self.ends or ()))

    def not_negative(self) -> Estimate:
        """The same of what cannot be below 0."""
        return self if self.ends is None else Estimate(self.value, max(self.ends[0], 0.0), self.ends[1])


@cache
def distributions() -> ModuleType | None:
    """SciPy's distributions; None where they are not installed."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        return None


def why_none(seeds: int) -> str:
    """Why there are no intervals over so many seeds, on one line; empty where there are."""
    if seeds < FEWEST_SEEDS:
        return f"no intervals: they take {FEWEST_SEEDS} seeds"
    if distributions() is None:
        return f"no intervals: they take SciPy, which pip install 'tailrace[{EXTRA}]' has"
    return ""


def mean_of(values: Sequence[float]) -> Statistic:
    """The mean of one value a seed."""
    import numpy as np  # whoever computes no interval does not wait for it

    of_seed = np.asarray(values, dtype=float)
    return lambda seeds: of_seed[seeds].mean(axis=-1)


def ratio_of(ours: Statistic, base: Statistic) -> Statistic:
    """One over the other, of the same seeds."""
    return lambda seeds: ours(seeds) / base(seeds)


def difference_of(ours: Statistic, base: Statistic) -> Statistic:
    """One less the other, of the same seeds."""
    return lambda seeds: ours(seeds) - base(seeds)


def estimate(statistic: Statistic, seeds: int) -> Estimate:
    """What a statistic is over seeds, with its interval where there are enough of them, and SciPy.

    Of three, five and ten seeds such an interval holds the true value 92 to 95 times in a hundred if that is
    a mean or a ratio, and about 91 times if it is a p99 (lognormal values; a test draws them).
    """
    import numpy as np

    every = np.arange(seeds)
    # a ratio over nothing is no number, which is seen below
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(every))
        scipy = None if why_none(seeds) else distributions()
        if scipy is None:
            return Estimate(value)
        without_one = np.array([np.delete(every, index) for index in every])
        of_rest = np.broadcast_to(np.asarray(statistic(without_one), dtype=float), seeds)
    if not (np.isfinite(value) and np.isfinite(of_rest).all()):
        return Estimate(value)
    # equal values have no spread, whatever their mean is rounded to
    spread = float(((of_rest - of_rest.mean()) ** 2).sum()) if np.ptp(of_rest) else 0.0
    error = ((seeds - 1) / seeds * spread) ** 0.5
    aside = error * float(scipy.stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return Estimate(value, value - aside, value + aside)


@dataclass(frozen=True)
class SeedValues:
    """A metric of several runs: a value a seed."""

    values: tuple[float, ...]

    @cached_property
    def value(self) -> float:
        """Their mean."""
        return mean(self.values)

    @cached_property
    def statistic(self) -> Statistic:
        """The mean of any choice of seeds."""
        return mean_of(self.values)

    @property
    def negative(self) -> bool:
        """Whether a value is below 0."""
        return min(self.values) < 0

    def select(self, places: Sequence[int]) -> SeedValues:
        """The values of some seeds, by their places."""
        return SeedValues(tuple(self.values[place] for place in places))

    def estimate(self) -> Estimate:
        """The mean with its interval, which does not reach below 0 where no value does."""
        if why_none(len(self.values)):
            return Estimate(self.value)
        estimated = estimate(self.statistic, len(self.values))
        return estimated if self.negative else estimated.not_negative()


def seed_values(runs: Sequence[Mapping[str, float]]) -> dict[str, SeedValues]:
    """The metrics of runs that differ in their seeds only; those that one run lacks are absent."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {
        name: SeedValues(tuple(run[name] for run in runs))
        for name in names
        if all(name in run for run in runs)
    }


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds only.

    key: the values of the axes but the seed; of a comparison `case` and `scheme`
    label: of figures and messages
    """

    key: Mapping[str, Setting]
    label: str
    results: tuple[Result, ...]

    @property
    def case(self) -> str:
        """`clean` or the faults' names."""
        return self.results[0].case

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of its runs, in their order."""
        return tuple(result.summary.seed for result in self.results)

    @property
    def complete(self) -> bool:
        """Whether every flow of every run finished."""
        return all(result.complete for result in self.results)

    @property
    def flows(self) -> int:
        """The finished flows that count, of all its runs."""
        return sum(result.summary.completed for result in self.results)

    @cached_property
    def measured(self) -> dict[str, SeedValues]:
        """The metrics that all its runs have."""
        return seed_values([measure(result) for result in self.results])

    @property
    def setting(self) -> tuple[tuple[str, Setting], ...]:
        """The key without the scheme and its options: schemes of one setting can be compared."""
        return tuple((name, value) for name, value in self.key.items() if name.partition(".")[0] != SCHEME)

    @property
    def scheme(self) -> Setting:
        """The value of the axis of schemes; empty where there is none."""
        return self.key.get(SCHEME, "")


def comparison_groups(results: Iterable[Result]) -> list[Group]:
    """Runs by case and label, in the order in which these first come."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.case, result.label), []).append(result)
    return [Group({CASE: case, SCHEME: label}, label, tuple(runs)) for (case, label), runs in groups.items()]


def fewest_flows(groups: Sequence[Group]) -> int:
    """The finished flows that count, over all seeds, of the group that has the fewest."""
    return min((group.flows for group in groups), default=0)


def tail_metric(name: str, percent: int) -> str:
    """The metric that stands for a p99: `fct_p99`, `fct_p95` or `fct_max`."""
    return name.replace("p99", tail_name(percent))


class SummaryRow(msgspec.Struct, frozen=True):
    """A row of results.json: a group of runs, which differ in their seeds alone.

    settings: what they share
    flows: that finished and count, over all seeds
    metrics: that all runs have, by the names of docs/metrics.md, in their base units
    ratios: of RATIOS, over the first scheme, seed by seed
    best: the metrics in which it is not worse than the best of its setting, beyond the interval
    """

    settings: dict[str, Setting]
    seeds: tuple[int, ...]
    flows: int
    metrics: dict[str, Estimate]
    ratios: dict[str, Estimate]
    best: tuple[str, ...]


def summarise(groups: Sequence[Group], first: str | None = None) -> list[SummaryRow]:
    """A row a group. Ratios are over the group of the scheme `first` whose key is otherwise the same."""
    names = [tail_metric(name, tail_percent(fewest_flows(groups))) for name in RATIOS]
    settings: dict[tuple[tuple[str, Setting], ...], list[Group]] = {}
    for group in groups:
        settings.setdefault(group.setting, []).append(group)
    rows = []
    for group in groups:
        rivals = settings[group.setting]
        base = next((rival for rival in rivals if first is not None and rival.scheme == first), None)
        estimates = {name: values.estimate() for name, values in group.measured.items()}
        ratios = {} if base is None else _ratios(group, base, names)
        best = _best(group, rivals)
        rows.append(SummaryRow(dict(group.key), group.seeds, group.flows, estimates, ratios, best))
    return rows


def ratio(
    ours: SeedValues | None, base: SeedValues | None, pairs: Sequence[tuple[int, int]]
) -> Estimate | None:
    """One over the other, of the same seeds, each pair the places of a seed in both; None without a ratio."""
    if ours is None or base is None or not pairs:
        return None
    ours, base = _paired(ours, base, pairs)
    if not base.value:
        return None
    if why_none(len(pairs)):
        return Estimate(ours.value / base.value)
    estimated = estimate(ratio_of(ours.statistic, base.statistic), len(pairs))
    return estimated if ours.negative or base.negative else estimated.not_negative()


def _paired(
    ours: SeedValues, base: SeedValues, pairs: Sequence[tuple[int, int]]
) -> tuple[SeedValues, SeedValues]:
    return ours.select([place for place, _ in pairs]), base.select([place for _, place in pairs])


def _pairs(ours: Group, base: Group) -> list[tuple[int, int]]:
    """The seeds that two groups have in common, each by its places in both."""
    places = {seed: place for place, seed in enumerate(base.seeds)}
    return [(place, places[seed]) for place, seed in enumerate(ours.seeds) if seed in places]


def _ratios(group: Group, base: Group, names: Sequence[str]) -> dict[str, Estimate]:
    if group is base:
        return {name: Estimate(1.0) for name in names if name in group.measured}
    pairs = _pairs(group, base)
    ratios = {name: ratio(group.measured.get(name), base.measured.get(name), pairs) for name in names}
    return {name: value for name, value in ratios.items() if value is not None}


def _best(group: Group, rivals: Sequence[Group]) -> tuple[str, ...]:
    """The metrics in which no rival is better beyond the interval; none without intervals."""
    able = [rival for rival in rivals if rival.complete and not why_none(len(rival.results))]
    if len(able) < 2 or not any(rival is group for rival in able):
        return ()
    return tuple(name for name in group.measured if _is_best(name, group, able))


def _is_best(name: str, group: Group, rivals: Sequence[Group]) -> bool:
    better = metrics()[split_class(name)[0]].better
    if not better:
        return False
    sign = -1.0 if better == "more" else 1.0
    having = [rival for rival in rivals if name in rival.measured]
    best = min(having, key=lambda rival: sign * rival.measured[name].value)
    pairs = _pairs(group, best)
    if best is group or not pairs:
        return best is group
    ours, theirs = _paired(group.measured[name], best.measured[name], pairs)
    estimated = estimate(difference_of(ours.statistic, theirs.statistic), len(pairs))
    return estimated.ends is not None and sign * estimated.ends[better == "more"] <= 0
