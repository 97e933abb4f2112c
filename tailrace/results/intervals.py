# SPDX-License-Identifier: Apache-2.0
"""Values over seeds with 95 % intervals: what would have come of other seeds of the same kind of traffic.

What is asked for is computed of all seeds, and of all but one, each left out in turn (the jackknife; Efron
and Tibshirani 1993, chapter 11). How much these differ gives a standard error, and Student's t, of one degree
less than there are seeds, how many of them an interval takes on either side. Of a mean that is the interval
of every textbook. A seed is left out of all schemes at once, which are so compared in pairs, on its traffic.

What is asked for is a `Statistic`: it takes an array of the numbers of seeds, of which the last axis is a
choice of seeds, and gives a value for each choice. Here NumPy is needed; without SciPy no interval is there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

EXTRA = "intervals"
"""The extra of this package that has SciPy."""

FEWEST_SEEDS = 3
"""Of two, an interval takes 12.7 standard errors on either side, and says nothing."""

CONFIDENCE = 0.95

Statistic = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value over seeds, and the interval in which it is, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def not_negative(self) -> Estimate:
        """The same of what cannot be below 0."""
        return self if self.low is None else Estimate(self.value, max(self.low, 0.0), self.high)


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
    import numpy as np  # whoever has no interval to compute does not wait for it

    of_seed = np.asarray(values, dtype=float)
    return lambda seeds: of_seed[seeds].mean(axis=-1)


def percentile_of(groups: Sequence[Sequence[float]], percent: int) -> Statistic:
    """The nearest-rank percentile of the values of all seeds of a choice together.

    Args:
        groups: the values of each seed; some may have none, and a choice of these alone is no number.
        percent: from 1 to 100.
    """
    import numpy as np

    of_seed = [np.asarray(group, dtype=float) for group in groups]

    def of_choice(seeds: Any) -> float:
        every = np.concatenate([of_seed[seed] for seed in seeds])
        rank = -(-percent * len(every) // 100)
        return float(np.partition(every, rank - 1)[rank - 1]) if rank else np.nan

    return lambda seeds: np.apply_along_axis(of_choice, -1, seeds)


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
        found = None if why_none(seeds) else distributions()
        if found is None:
            return Estimate(value)
        without_one = np.array([np.delete(every, one) for one in every])
        of_rest = np.broadcast_to(np.asarray(statistic(without_one), dtype=float), seeds)
    if not (np.isfinite(value) and np.isfinite(of_rest).all()):
        return Estimate(value)
    # equal values have no spread, whatever their mean is rounded to
    spread = float(((of_rest - of_rest.mean()) ** 2).sum()) if np.ptp(of_rest) else 0.0
    error = ((seeds - 1) / seeds * spread) ** 0.5
    aside = error * float(found.stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return Estimate(value, value - aside, value + aside)
