# SPDX-License-Identifier: Apache-2.0
"""The warm-up of runs with a measuring interval as curves: mean slowdown against the start time of flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UnsetType

from tailrace.papers.document import Cell, Curve
from tailrace.results.result import Result
from tailrace.results.statistics import mean
from tailrace.results.steady import PARTS, Steady


def warm_up_curves(cells: Sequence[Cell], runs: Sequence[Sequence[Result]]) -> tuple[Curve, ...]:
    """A panel per case with a line per scheme: x is the middle of a part of the time in ns.

    Args:
        runs: the results of each cell, one per seed; a cell without a measuring interval has no line.
    """
    curves = []
    for cell, results in zip(cells, runs, strict=True):
        of_seeds = list(_steady(results))
        points = []
        for part in range(PARTS if of_seeds else 0):
            slowdowns = [each.slowdown[part] for each in of_seeds]
            known = [slowdown for slowdown in slowdowns if slowdown is not None]
            if known:
                points.append(((part + 0.5) * of_seeds[0].until_ns / PARTS, mean(known)))
        if points:
            x, y = zip(*points, strict=True)
            curves.append(Curve(cell.case, cell.label, x, y))
    return tuple(curves)


def accumulating(cells: Sequence[Cell], runs: Sequence[Sequence[Result]]) -> list[str]:
    """The cells without a steady state in most seeds (tailrace/results/steady.py)."""
    named = []
    for cell, results in zip(cells, runs, strict=True):
        settled = [each.is_steady for each in _steady(results)]
        if 2 * settled.count(False) > len(settled):
            named.append(" ".join(filter(None, (cell.case, cell.label))))
    return named


def _steady(results: Sequence[Result]) -> Iterator[Steady]:
    for result in results:
        if not isinstance(result.summary.steady, UnsetType):
            yield result.summary.steady
