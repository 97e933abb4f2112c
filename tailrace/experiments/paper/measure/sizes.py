# SPDX-License-Identifier: Apache-2.0
"""Slowdown by size of flow (HF2T Fig. 6): a line a scheme, and lists of numbers for claims.

The flows of a case are put into ranges of size that hold equally many of them, the same for all schemes,
which send the same flows. The flows of all seeds count together: a percentile of few flows says little.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tailrace.experiments.paper.claims.expression import BY_SIZE
from tailrace.experiments.paper.document import Cell, Curve
from tailrace.experiments.results.result import Result
from tailrace.experiments.results.rows import FlowRow, measured_rows
from tailrace.experiments.results.statistics import percentile

RANGES = 10
PERCENTS = (50, 99)
NAMES = {percent: f"slowdown_p{percent}{BY_SIZE}" for percent in PERCENTS}
"""Metrics that are lists, one number a range, as claims name them (expression.py)."""

TITLES = {50: "median", 99: "99th percentile"}


def ends_bytes(results: Sequence[Result]) -> tuple[int, ...]:
    """The largest size of each range, ascending; fewer than RANGES where many flows have one size."""
    sizes = [row.bytes for result in results for row in measured_rows(result.rows)]
    if not sizes:
        return ()
    return tuple(dict.fromkeys(percentile(sizes, 100 * number // RANGES) for number in range(1, RANGES + 1)))


def slowdowns(results: Sequence[Result], ends: Sequence[int], percent: int) -> tuple[float, ...]:
    """The percentile of the slowdowns in each range; none where flows did not finish."""
    rows: list[FlowRow] = [row for result in results for row in measured_rows(result.rows)]
    found, below = [], 0
    for end in ends:
        factors = [row.slowdown for row in rows if below < row.bytes <= end]
        finished = [factor for factor in factors if factor is not None]
        if not finished or len(finished) < len(factors):
            return ()
        found.append(percentile(finished, percent))
        below = end
    return tuple(found)


def by_size(
    cells: Sequence[Cell], runs: Sequence[Sequence[Result]]
) -> tuple[tuple[Cell, ...], tuple[Curve, ...]]:
    """The cells with their slowdowns by size, and the curves of these: a panel a case and percentile.

    Args:
        runs: of each cell, one a seed.
    """
    found, curves = [], []
    for cell, results in zip(cells, runs, strict=True):
        # of all schemes of the case, so that none decides the ranges
        of_case = [own for other, own in zip(cells, runs, strict=True) if other.case == cell.case]
        ends = ends_bytes([result for own in of_case for result in own])
        metrics = dict(cell.metrics)
        for percent in PERCENTS if results else ():
            factors = slowdowns(results, ends, percent)
            metrics |= {f"{NAMES[percent]}_{number}": value for number, value in enumerate(factors, start=1)}
            panel = ": ".join(filter(None, (cell.case, TITLES[percent])))
            if factors:
                curves.append(Curve(panel, cell.label, tuple(map(float, ends)), factors))
        found.append(msgspec.structs.replace(cell, metrics=metrics))
    return tuple(found), tuple(curves)
