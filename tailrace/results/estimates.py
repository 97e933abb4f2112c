# SPDX-License-Identifier: Apache-2.0
"""Statistics over seeds: means with 95 % confidence intervals, paired ratios, and groups as good as the best.

A metric over seeds is the mean of the runs' values, also for percentiles. The interval estimates the range of
the value with other seeds of the same kind of traffic. It is computed by the jackknife (Efron and Tibshirani
1993, chapter 11): the statistic is computed from all seeds, and once for each seed without that seed. The
spread of the latter values determines the standard error. The half-width in standard errors is Student's t
with n - 1 degrees of freedom for n seeds. For a mean this is the usual t interval. Ratios and differences are
paired: with the same seed every scheme has the same traffic, so a seed is left out of both at once.

A `Statistic` takes an array of indices of seeds, whose last axis is a selection of seeds, and returns a value
for each selection. It needs NumPy; without SciPy there are no intervals.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import variance
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
"""Metrics that are compared with the first scheme's; with few flows p99 is replaced by p95 or the maximum."""

EXTRA = "intervals"
"""The optional dependency of this package that installs SciPy."""

FEWEST_SEEDS = 3
"""Minimum number of seeds for an interval: with two seeds its half-width is 12.7 standard errors."""

CONFIDENCE = 0.95

Statistic = Callable[[Any], Any]
"""A function of selections of seeds; see the top of this file."""


class Estimate(msgspec.Struct, frozen=True):
    """A value over seeds, and the ends of its 95 % interval, which are unset without an interval."""

    value: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval; None without an interval."""
        if isinstance(self.low, UnsetType) or isinstance(self.high, UnsetType):
            return None
        return self.low, self.high

    @property
    def numbers(self) -> tuple[float, ...]:
        """The value, and the ends of the interval if there is one."""
        return self.value, *(self.ends or ())

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit, whose values are `factor` times as large."""
        return Estimate(self.value * factor, *(end * factor for end in self.ends or ()))

    def not_negative(self) -> Estimate:
        """The estimate of a quantity that cannot be negative: the interval begins at 0 or more."""
        return self if self.ends is None else Estimate(self.value, max(self.ends[0], 0.0), self.ends[1])


@cache
def distributions() -> ModuleType | None:
    """SciPy's module of distribution functions; None if it is not installed."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        return None


def why_none(seeds: int) -> str:
    """Why there are no intervals over `seeds` seeds, on one line; empty if there are intervals."""
    if seeds < FEWEST_SEEDS:
        return f"no intervals: they need {FEWEST_SEEDS} seeds"
    if distributions() is None:
        return f"no intervals: they need SciPy, see pip install 'tailrace[{EXTRA}]'"
    return ""


def mean_of(values: Sequence[float]) -> Statistic:
    """The statistic that is the mean of one value per seed."""
    import numpy as np  # imported late, since it is slow and only needed for intervals

    of_seed = np.asarray(values, dtype=float)
    return lambda seeds: of_seed[seeds].mean(axis=-1)


def ratio_of(ours: Statistic, base: Statistic) -> Statistic:
    """The ratio of two statistics for the same seeds."""
    return lambda seeds: ours(seeds) / base(seeds)


def difference_of(ours: Statistic, base: Statistic) -> Statistic:
    """The difference of two statistics for the same seeds."""
    return lambda seeds: ours(seeds) - base(seeds)


def estimate(statistic: Statistic, seeds: int) -> Estimate:
    """The value of a statistic over seeds, with its interval if there are enough seeds and SciPy.

    With three, five and ten seeds the interval contains the true value of a mean or a ratio in 92 to 95 % of
    cases, and the true value of a p99 in about 91 % of cases (for lognormal values, drawn by a test).
    """
    import numpy as np

    all_seeds = np.arange(seeds)
    # a division by 0 gives inf or nan, which is handled below
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(all_seeds))
        scipy = None if why_none(seeds) else distributions()
        if scipy is None:
            return Estimate(value)
        without_one = np.array([np.delete(all_seeds, index) for index in all_seeds])
        of_rest = np.broadcast_to(np.asarray(statistic(without_one), dtype=float), seeds)
    if not (np.isfinite(value) and np.isfinite(of_rest).all()):
        return Estimate(value)
    # equal values have no spread, even if rounding makes their mean differ
    spread = float(((of_rest - of_rest.mean()) ** 2).sum()) if np.ptp(of_rest) else 0.0
    error = ((seeds - 1) / seeds * spread) ** 0.5
    # stdtrit: quantile of Student's t
    half_width = error * float(scipy.stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return Estimate(value, value - half_width, value + half_width)


@dataclass(frozen=True)
class SeedValues:
    """The values of a metric in runs that differ in their seeds, one value per run."""

    values: tuple[float, ...]

    @cached_property
    def value(self) -> float:
        """The mean of the values."""
        return mean(self.values)

    @cached_property
    def statistic(self) -> Statistic:
        """The mean as a function of the selected seeds."""
        return mean_of(self.values)

    @property
    def negative(self) -> bool:
        """Whether any value is below 0."""
        return min(self.values) < 0

    def select(self, indices: Sequence[int]) -> SeedValues:
        """The values of some seeds, by their indices."""
        return SeedValues(tuple(self.values[index] for index in indices))

    def estimate(self) -> Estimate:
        """The mean with its interval, which begins at 0 or more if no value is negative."""
        if why_none(len(self.values)):
            return Estimate(self.value)
        estimated = estimate(self.statistic, len(self.values))
        return estimated if self.negative else estimated.not_negative()


def seed_values(runs: Sequence[Mapping[str, float]]) -> dict[str, SeedValues]:
    """The metrics of runs that differ only in their seeds; a metric that any run lacks is absent."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {
        name: SeedValues(tuple(run[name] for run in runs))
        for name in names
        if all(name in run for run in runs)
    }


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds.

    key: the value of each axis except the seed; in a comparison these are `case` and `scheme`
    label: the group's label in figures and messages
    """

    key: Mapping[str, Setting]
    label: str
    results: tuple[Result, ...]

    @property
    def case(self) -> str:
        """`clean`, or the names of the faults."""
        return self.results[0].case

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the group's runs, in their order."""
        return tuple(result.summary.seed for result in self.results)

    @property
    def complete(self) -> bool:
        """Whether every flow of every run finished."""
        return all(result.complete for result in self.results)

    @property
    def flows(self) -> int:
        """The number of finished flows, without background flows, in all runs of the group."""
        return sum(result.summary.completed for result in self.results)

    @cached_property
    def measured(self) -> dict[str, SeedValues]:
        """The metrics that all runs of the group have."""
        return seed_values([measure(result) for result in self.results])

    @property
    def setting(self) -> tuple[tuple[str, Setting], ...]:
        """The key without the scheme and its options; groups of equal settings can be compared."""
        return tuple((name, value) for name, value in self.key.items() if name.partition(".")[0] != SCHEME)

    @property
    def scheme(self) -> Setting:
        """The value of the axis `scheme`; empty without such an axis."""
        return self.key.get(SCHEME, "")


def comparison_groups(results: Iterable[Result]) -> list[Group]:
    """Groups of runs with equal case and label, in the order of their first runs."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.case, result.label), []).append(result)
    return [Group({CASE: case, SCHEME: label}, label, tuple(runs)) for (case, label), runs in groups.items()]


def fewest_flows(groups: Sequence[Group]) -> int:
    """The smallest number of finished flows, without background flows, of any group over all its seeds."""
    return min((group.flows for group in groups), default=0)


def tail_metric(name: str, percent: int) -> str:
    """The metric to show instead of a p99: `fct_p99`, `fct_p95` or `fct_max`, by `tail_percent`."""
    return name.replace("p99", tail_name(percent))


class SummaryRow(msgspec.Struct, frozen=True):
    """A row of results.json: a group of runs that differ only in their seeds.

    settings: the group's value on each axis except the seed
    flows: number of finished flows over all seeds, without background flows
    metrics: the metrics that all runs have, by the names of docs/reference/metrics.md, in their base units
    ratios: the metrics of RATIOS divided by those of the first scheme, seed by seed
    best: the metrics in which no group of the same setting is better by more than the interval
    """

    settings: dict[str, Setting]
    seeds: tuple[int, ...]
    flows: int
    metrics: dict[str, Estimate]
    ratios: dict[str, Estimate]
    best: tuple[str, ...]


def summarise(groups: Sequence[Group], first: str | None = None) -> list[SummaryRow]:
    """One row per group. Ratios are relative to the group of the scheme `first` with the same setting."""
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
    """The ratio of two metrics; `pairs`: the index of each common seed in both. None without a ratio."""
    if ours is None or base is None or not pairs:
        return None
    ours, base = _paired(ours, base, pairs)
    if not base.value:
        return None
    if why_none(len(pairs)):
        return Estimate(ours.value / base.value)
    estimated = estimate(ratio_of(ours.statistic, base.statistic), len(pairs))
    return estimated if ours.negative or base.negative else estimated.not_negative()


def independent_ratio(ours: SeedValues, base: SeedValues) -> Estimate | None:
    """The ratio of two metrics over independent samples, such as runs of two programs. None without a ratio.

    The squared relative errors of both means add up; Student's t has the degrees of freedom of Welch 1947.
    Metrics are positive, so no interval goes below 0.
    """
    if not base.value or not ours.value:
        return None
    value = ours.value / base.value
    scipy = None if why_none(min(len(ours.values), len(base.values))) else distributions()
    if scipy is None:
        return Estimate(value)
    errors = [
        (variance(each.values) / len(each.values) / each.value**2, len(each.values) - 1)
        for each in (ours, base)
    ]
    error = sum(square for square, _ in errors)
    freedom = error**2 / sum(square**2 / count for square, count in errors) if error else math.inf
    half_width = abs(value) * error**0.5 * float(scipy.stdtrit(freedom, (1 + CONFIDENCE) / 2))
    return Estimate(value, max(value - half_width, 0.0), value + half_width)


def _paired(
    ours: SeedValues, base: SeedValues, pairs: Sequence[tuple[int, int]]
) -> tuple[SeedValues, SeedValues]:
    return ours.select([index for index, _ in pairs]), base.select([index for _, index in pairs])


def paired_seeds(ours: Group, base: Group) -> list[tuple[int, int]]:
    """The seeds that two groups have in common, each as its indices in both."""
    indices = {seed: index for index, seed in enumerate(base.seeds)}
    return [(index, indices[seed]) for index, seed in enumerate(ours.seeds) if seed in indices]


def _ratios(group: Group, base: Group, names: Sequence[str]) -> dict[str, Estimate]:
    if group is base:
        return {name: Estimate(1.0) for name in names if name in group.measured}
    pairs = paired_seeds(group, base)
    ratios = {name: ratio(group.measured.get(name), base.measured.get(name), pairs) for name in names}
    return {name: value for name, value in ratios.items() if value is not None}


def _best(group: Group, rivals: Sequence[Group]) -> tuple[str, ...]:
    """The metrics in which no other group is better by more than the interval; empty without intervals."""
    comparable = [rival for rival in rivals if rival.complete and not why_none(len(rival.results))]
    if len(comparable) < 2 or not any(rival is group for rival in comparable):
        return ()
    return tuple(name for name in group.measured if _is_best(name, group, comparable))


def _is_best(name: str, group: Group, rivals: Sequence[Group]) -> bool:
    better = metrics()[split_class(name)[0]].better
    if not better:
        return False
    sign = -1.0 if better == "more" else 1.0
    measured = [rival for rival in rivals if name in rival.measured]
    best = min(measured, key=lambda rival: sign * rival.measured[name].value)
    pairs = paired_seeds(group, best)
    if best is group or not pairs:
        return best is group
    ours, theirs = _paired(group.measured[name], best.measured[name], pairs)
    estimated = estimate(difference_of(ours.statistic, theirs.statistic), len(pairs))
    # the end of the interval that is better for `group`: the low end, or the high end if more is better
    return estimated.ends is not None and sign * estimated.ends[better == "more"] <= 0
