# SPDX-License-Identifier: Apache-2.0
"""Slowdown by flow size (HF2T Fig. 6): a line per scheme, and lists of numbers for claims.

The flows of a case (a setting in which schemes are compared) are divided into ranges of size with equally
many flows. The ranges are the same for all schemes, which send the same flows. Percentiles are over the flows
of all seeds, since a percentile of few flows is unreliable. If a range has too few flows for a p99, the p95
or the maximum is used, as the panel's title shows.
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
"""Names, in claims, of metrics that are lists with one number per range (expression.py)."""

TITLES = {50: "median", 95: "95th percentile", 99: "99th percentile", 100: "largest"}


@dataclass(frozen=True)
class PooledPercentile(SeedValues):
    """A percentile over the flows of all seeds together; `values` are the numbers of flows of the seeds."""

    flows: tuple[tuple[float, ...], ...]
    percent: int

    @classmethod
    def of(cls, flows: tuple[tuple[float, ...], ...], percent: int) -> PooledPercentile:
        """The percentile over `flows`, the values of each seed's flows."""
        return cls(tuple(float(len(values)) for values in flows), flows, percent)

    def select(self, indices: Sequence[int]) -> PooledPercentile:
        """The percentile over the flows of some seeds, by their indices."""
        return PooledPercentile.of(tuple(self.flows[index] for index in indices), self.percent)

    @cached_property
    def value(self) -> float:
        """The percentile over all seeds."""
        return percentile([value for values in self.flows for value in values], self.percent)

    @cached_property
    def statistic(self) -> Statistic:
        """The percentile as a function of selected seeds; nan if these seeds have no flows."""
        import numpy as np  # imported late, since it is slow and only needed for intervals

        of_seed = [np.asarray(values, dtype=float) for values in self.flows]

        def of_selection(seeds: Any) -> float:
            pooled = np.concatenate([of_seed[seed] for seed in seeds])
            rank = -(-self.percent * len(pooled) // 100)
            return float(np.partition(pooled, rank - 1)[rank - 1]) if rank else np.nan

        return lambda seeds: np.apply_along_axis(of_selection, -1, seeds)


def ends_bytes(results: Sequence[Result]) -> tuple[int, ...]:
    """The largest size of each range, ascending; fewer than RANGES sizes if many flows have the same size."""
    sizes = [row.bytes for result in results for row in measured_rows(result.rows)]
    if not sizes:
        return ()
    return tuple(dict.fromkeys(percentile(sizes, 100 * number // RANGES) for number in range(1, RANGES + 1)))


def slowdowns(results: Sequence[Result], ends: Sequence[int], percent: int) -> tuple[PooledPercentile, ...]:
    """The percentile of the slowdowns in each range; empty if a flow did not finish."""
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


def _fewest_flows(runs: Iterable[Sequence[Result]], ends: Sequence[int]) -> int:
    """The smallest number of flows in any range of any scheme."""
    return min((sum(map(len, each.flows)) for cell in runs for each in slowdowns(cell, ends, 50)), default=0)


def by_size(
    cells: Sequence[Cell], runs: Sequence[Sequence[Result]]
) -> tuple[list[dict[str, SeedValues]], tuple[Curve, ...]]:
    """The slowdowns of each cell by flow size, and their curves: a panel per case and percentile.

    Args:
        runs: the results of each cell, one per seed.
    """
    by_cell, curves = [], []
    for cell, results in zip(cells, runs, strict=True):
        # the flows of all schemes of the case determine the ranges
        of_case = [
            results_of_cell
            for other, results_of_cell in zip(cells, runs, strict=True)
            if other.case == cell.case
        ]
        ends = ends_bytes([result for results_of_cell in of_case for result in results_of_cell])
        measures: dict[str, SeedValues] = {}
        for percent in PERCENTS if results else ():
            shown = 50 if percent == 50 else tail_percent(_fewest_flows(of_case, ends))
            factors = slowdowns(results, ends, shown)
            measures |= {f"{NAMES[percent]}_{number}": each for number, each in enumerate(factors, start=1)}
            panel = ": ".join(filter(None, (cell.case, TITLES[shown])))
            if factors:
                heights = tuple(factor.value for factor in factors)
                curves.append(Curve(panel, cell.label, tuple(map(float, ends)), heights))
        by_cell.append(measures)
    return by_cell, tuple(curves)
