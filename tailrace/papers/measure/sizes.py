# SPDX-License-Identifier: Apache-2.0
"""Slowdown by size of flow (HF2T Fig. 6): a line a scheme, and lists of numbers for claims.

The flows of a case are put into ranges of size that hold equally many of them, the same for all schemes,
which send the same flows. The flows of all seeds count together: a percentile of few flows says little. Where
a range has too few for a p99, a p95 or the largest stands for it, and the panel says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailrace.papers.claims.expression import BY_SIZE
from tailrace.papers.document import Cell, Curve
from tailrace.results.estimates import SeedValues, Statistic
from tailrace.results.result import Result
from tailrace.results.rows import measured_rows
from tailrace.results.statistics import percentile, tail_percent

RANGES = 10
PERCENTS = (50, 99)
NAMES = {percent: f"slowdown_p{percent}{BY_SIZE}" for percent in PERCENTS}
"""Metrics that are lists, one number a range, as claims name them (expression.py)."""

TITLES = {50: "median", 95: "95th percentile", 99: "99th percentile", 100: "largest"}


@dataclass(frozen=True)
class PooledPercentile(SeedValues):
    """A percentile of the flows of all seeds together; `values` are how many flows each seed has."""

    flows: tuple[tuple[float, ...], ...]
    percent: int

    @classmethod
    def of(cls, flows: tuple[tuple[float, ...], ...], percent: int) -> PooledPercentile:
        """The percentile of the values of each seed's flows."""
        return cls(tuple(float(len(values)) for values in flows), flows, percent)

    def select(self, places: Sequence[int]) -> PooledPercentile:
        """The flows of some seeds, by their places."""
        return PooledPercentile.of(tuple(self.flows[place] for place in places), self.percent)

    @cached_property
    def value(self) -> float:
        """Over all seeds."""
        return percentile([value for values in self.flows for value in values], self.percent)

    @cached_property
    def statistic(self) -> Statistic:
        """The same of any choice of seeds; of one without flows no number."""
        import numpy as np  # whoever computes no interval does not wait for it

        of_seed = [np.asarray(values, dtype=float) for values in self.flows]

        def of_choice(seeds: Any) -> float:
            every = np.concatenate([of_seed[seed] for seed in seeds])
            rank = -(-self.percent * len(every) // 100)
            return float(np.partition(every, rank - 1)[rank - 1]) if rank else np.nan

        return lambda seeds: np.apply_along_axis(of_choice, -1, seeds)


def ends_bytes(results: Sequence[Result]) -> tuple[int, ...]:
    """The largest size of each range, ascending; fewer than RANGES where many flows have one size."""
    sizes = [row.bytes for result in results for row in measured_rows(result.rows)]
    if not sizes:
        return ()
    return tuple(dict.fromkeys(percentile(sizes, 100 * number // RANGES) for number in range(1, RANGES + 1)))


def slowdowns(results: Sequence[Result], ends: Sequence[int], percent: int) -> tuple[PooledPercentile, ...]:
    """The percentile of the slowdowns in each range; none where flows did not finish."""
    rows = [measured_rows(result.rows) for result in results]
    if any(row.slowdown is None for rows_of_run in rows for row in rows_of_run):
        return ()
    percentiles: list[PooledPercentile] = []
    below = 0
    for end in ends:
        factors = tuple(
            tuple(
                row.slowdown for row in rows_of_run if below < row.bytes <= end and row.slowdown is not None
            )
            for rows_of_run in rows
        )
        if not any(factors):
            return ()
        percentiles.append(PooledPercentile.of(factors, percent))
        below = end
    return tuple(percentiles)


def _fewest(runs: Iterable[Sequence[Result]], ends: Sequence[int]) -> int:
    """The flows of the range and scheme that have the fewest."""
    return min((sum(map(len, each.flows)) for cell in runs for each in slowdowns(cell, ends, 50)), default=0)


def by_size(
    cells: Sequence[Cell], runs: Sequence[Sequence[Result]]
) -> tuple[list[dict[str, SeedValues]], tuple[Curve, ...]]:
    """The slowdowns of each cell by size, and the curves of these: a panel a case and percentile.

    Args:
        runs: of each cell, one a seed.
    """
    by_cell, curves = [], []
    for cell, results in zip(cells, runs, strict=True):
        # of all schemes of the case, so that none decides the ranges
        of_case = [
            results_of_cell
            for other, results_of_cell in zip(cells, runs, strict=True)
            if other.case == cell.case
        ]
        ends = ends_bytes([result for results_of_cell in of_case for result in results_of_cell])
        measures: dict[str, SeedValues] = {}
        for percent in PERCENTS if results else ():
            shown = 50 if percent == 50 else tail_percent(_fewest(of_case, ends))
            factors = slowdowns(results, ends, shown)
            measures |= {f"{NAMES[percent]}_{number}": each for number, each in enumerate(factors, start=1)}
            panel = ": ".join(filter(None, (cell.case, TITLES[shown])))
            if factors:
                heights = tuple(factor.value for factor in factors)
                curves.append(Curve(panel, cell.label, tuple(map(float, ends)), heights))
        by_cell.append(measures)
    return by_cell, tuple(curves)
