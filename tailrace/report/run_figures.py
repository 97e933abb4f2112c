# SPDX-License-Identifier: Apache-2.0
"""Figures of flows: completion times, slowdown by size, order.

A case is `clean`, or the faults' names; a label is a scheme's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tailrace.report.figures import plot
from tailrace.report.figures.figure import bars, completion
from tailrace.report.figures.kind import FINISHED, kind
from tailrace.report.figures.panels import Numbered, by_case, cases_and_labels, shares
from tailrace.report.figures.plot import Look
from tailrace.results.estimates import Group, SeedValues, comparison_groups
from tailrace.results.results import Results
from tailrace.results.rows import measured_rows
from tailrace.results.statistics import mean, percentile, tail_name, tail_percent
from tailrace.spec.units import format_bytes

_BINS = 8
_MOST_SIZES = 6
"""Maximum number of flow sizes that are shown separately; with more sizes, ranges of sizes are shown."""


@kind("Flow completion times", FINISHED)
def cdf(results: Results, look: Look) -> Figure | None:
    """The share of flows that had finished after a time: a panel per case, a line per scheme."""
    groups = comparison_groups(results.results)
    return by_case(groups, look, completion) if any(group.flows for group in groups) else None


@kind("Slowdown: completion time over that of the flow alone in the network", FINISHED)
def slowdown_by_size(results: Results, look: Look) -> Figure | None:
    """Mean and p99 slowdown by flow size; if all flows have the same size, the distribution of slowdowns.

    If a size has few flows, p95 or the maximum is shown in place of p99. Means have bands, their intervals
    over the seeds. None if no flow has a slowdown.
    """
    groups = comparison_groups(results.results)
    edges = _edges(sorted({row.bytes for result in results.results for row in measured_rows(result.rows)}))
    ranges = list(zip((0, *edges), edges, strict=False))
    counts = [sum(map(len, _slowdowns(group, *ends))) for group in groups for ends in ranges]
    if not any(counts):
        return None
    percent = tail_percent(min(filter(None, counts)))

    def draw(axis: Axes, of_case: Numbered, look: Look) -> None:
        if len(ranges) == 1:
            shares(axis, of_case, _all_slowdowns, ("slowdown (×)", "share of flows"), look, linewidth=1.6)
            return
        drawn = [
            value for number, group in of_case for value in _by_size(axis, group, ranges, number, percent)
        ]
        plot.logarithmic(axis, "x", lambda size: format_bytes(round(size)), base=2)
        axis.set_xlabel(f"flow size up to\nsolid: mean, dotted: {tail_name(percent)}")
        axis.set_ylabel("slowdown (×)")
        look.scale(axis, "y", drawn)

    return by_case(groups, look, draw)


def _edges(sizes: Sequence[int]) -> list[int]:
    """Upper ends of the ranges of sizes: all sizes if there are few, else ends with a constant ratio."""
    if len(sizes) <= _MOST_SIZES:
        return list(sizes)
    ratio = (sizes[-1] / sizes[0]) ** (1 / _BINS)
    return [math.ceil(sizes[0] * ratio**number) for number in range(1, _BINS)] + [sizes[-1]]


def _all_slowdowns(group: Group) -> list[list[float | None]]:
    """The slowdowns of all measured flows by seed; None for flows that did not finish."""
    return [[row.slowdown for row in measured_rows(result.rows)] for result in group.results]


def _slowdowns(group: Group, below: int, edge: int) -> list[list[float]]:
    """The slowdowns by seed of the finished flows in a range of sizes, of which `below` is no part."""
    return [
        [
            row.slowdown
            for row in measured_rows(result.rows)
            if row.slowdown is not None and below < row.bytes <= edge
        ]
        for result in group.results
    ]


def _by_size(
    axis: Axes, group: Group, ranges: Sequence[tuple[int, int]], number: int, percent: int
) -> list[float]:
    """Draws means over the seeds, as in tables, and tails of the flows of all seeds; returns all of them."""
    sizes, middles, tails, ends = [], [], [], []
    for below, edge in ranges:
        of_seeds = _slowdowns(group, below, edge)
        if any(of_seeds):
            means = SeedValues(tuple(mean(factors) for factors in of_seeds if factors)).estimate()
            sizes.append(edge)
            middles.append(means.value)
            tails.append(percentile([factor for factors in of_seeds for factor in factors], percent))
            ends.append(means.ends if all(of_seeds) else None)
    plot.band(axis, sizes, ends, number)
    axis.plot(sizes, middles, color=plot.colour(number), marker="o", markersize=3, label=group.label)
    axis.plot(sizes, tails, color=plot.colour(number), marker="^", markersize=3, linestyle=":")
    return [*middles, *tails]


@kind("First transmissions that arrived out of order", "packets out of order")
def order(results: Results, look: Look) -> Figure | None:
    """Share of packets that arrived out of order: a group of bars per case; None if it is 0 everywhere."""
    groups = comparison_groups(results.results)
    cases, labels = cases_and_labels(groups)
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=min(9.0, max(4.2, 0.5 * len(cases) * len(labels))))
        bars(axis, ["out_of_order_share"], groups)
        if not any(bar.get_height() for bar in axis.patches if isinstance(bar, Rectangle)):
            return None
        plot.legend(figure, axis)
    return figure
