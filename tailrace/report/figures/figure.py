# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: distributions of completion times, shares of packets out of order and, in
lossless networks, PFC pauses, warnings and recirculations.

A case is `clean`, or the faults' names; a label is a scheme's name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.report.figures import plot
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.report.figures.ranking import ranking_figure
from tailrace.results.estimates import Group, SeedValues, comparison_groups
from tailrace.results.metrics import BUILT_IN, metric, plugin_metrics
from tailrace.results.result import max_fct_ns
from tailrace.results.rows import measured_rows
from tailrace.results.statistics import cumulative
from tailrace.results.units import UNITS
from tailrace.spec.units import time_unit

if TYPE_CHECKING:
    from tailrace.results.result import Result

MOST_LINES = len(plot.COLOURS)

LOSSLESS = ("pauses", "warnings", "recirculations")
"""Metrics of lossless networks; they share a panel."""

_MOST_POINTS, _BAND_POINTS = 2000, 200
"""Maximum number of points of a distribution, since more would overlap, and of the band around it."""

MOST_METRICS = 4
"""Maximum number of metrics of plug-ins that are drawn, each in a panel; tables contain all of them."""


def draw(results: Sequence[Result], files: Iterable[Path]) -> None:
    """Draws the figure into each of the files."""
    for path in files:
        plot.save(comparison_figure(results), path)


def comparison_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure:
    """The figure of a comparison.

    Its panels are: completion times for each case, shares out of order, pauses (if there are any), and each
    metric of a plug-in. With more than MOST_LINES schemes the figure is that of ranking.py, with a row for
    each scheme.
    """
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    many = len(labels) > MOST_LINES
    figure = ranking_figure(results, look) if many else _panels(results, cases, labels, look)
    # so that the figure is also readable on a dark page
    figure.set_facecolor("white")
    return figure


def _panels(results: Sequence[Result], cases: Sequence[str], labels: Sequence[str], look: Look) -> Figure:
    groups = comparison_groups(results)
    with plot.style():
        observed = {name for group in groups for name in group.measured}
        of_plugins = [name for name in plugin_metrics() if name in observed][:MOST_METRICS]
        lossless = "pauses" in observed
        count = len(cases) + 1 + lossless + len(of_plugins)
        figure, axes = plot.panels(count, look, height=3.6, columns=count)
        for axis, case in zip(axes, cases, strict=False):
            completion(axis, case, [group for group in groups if group.case == case], labels, look)
        bars(axes[len(cases)], "out_of_order_share", groups, cases, labels, highest=1.0)
        if lossless:
            _pauses(axes[len(cases) + 1], groups, cases, labels)
        for axis, name in zip(axes[count - len(of_plugins) :], of_plugins, strict=False):
            bars(axis, name, groups, cases, labels)
        plot.legend(figure, axes[0])
    return figure


def completion(
    axis: Axes, case: str, groups: Sequence[Group], labels: Sequence[str], look: Look = NATURAL
) -> None:
    """One line per scheme: the share of the measured flows of all seeds that had finished after a time."""
    unit_ns, unit = time_unit(max_fct_ns([result for group in groups for result in group.results]))
    drawn: list[float] = []
    for group in groups:
        of_seeds = [
            [None if row.fct_ns is None else row.fct_ns / unit_ns for row in measured_rows(result.rows)]
            for result in group.results
        ]
        drawn += distributions(axis, of_seeds, labels.index(group.label), label=group.label, linewidth=1.8)
    axis.set_title(f"Flow completion, {case}")
    axis.set_xlabel(f"flow completion time ({unit})")
    axis.set_ylabel("share of flows")
    axis.set_ylim(0, 1.02)
    look.scale(axis, "x", drawn)


def distributions(
    axis: Axes, of_seeds: Sequence[Sequence[float | None]], number: int, **style: Any
) -> list[float]:
    """Draws the distribution of the values of all seeds, with a band: the intervals of the shares.

    Args:
        axis: where to draw.
        of_seeds: the values of each seed; None for a flow that has none, since it did not finish.
        number: the index of the scheme.
        style: properties of the line, such as its label.

    Returns the values.
    """
    finished = [sorted(value for value in values if value is not None) for values in of_seeds]
    pooled = sorted(value for values in finished for value in values)
    distribution(axis, pooled, sum(map(len, of_seeds)), number, **style)
    x = list(dict.fromkeys(pooled[:: len(pooled) // _BAND_POINTS + 1]))
    totals = [len(values) for values in of_seeds]
    plot.band(axis, x, (_share_ends(finished, totals, at) for at in x if all(totals)), number)
    return pooled


def _share_ends(of_seeds: Sequence[Sequence[float]], totals: Sequence[int], most: float) -> plot.Ends:
    """The interval of the share of values of at most `most`, of sorted values by seed; None without it."""
    shares = [bisect_right(values, most) / total for values, total in zip(of_seeds, totals, strict=True)]
    ends = SeedValues(tuple(shares)).estimate().ends
    return None if ends is None else (ends[0], min(ends[1], 1.0))


def distribution(axis: Axes, values: Sequence[float], total: int, number: int, **style: Any) -> None:
    """Draws the share of `total` values that are at most as large, for the scheme with the index `number`."""
    x, y = cumulative(values, total)
    step = len(x) // _MOST_POINTS + 1
    if step > 1:
        x, y = [*x[::step], x[-1]], [*y[::step], y[-1]]
    colour, dashes = plot.colour(number), plot.line(number)
    axis.step([*x[:1], *x], [0.0, *y] if x else [], where="post", color=colour, linestyle=dashes, **style)


def bars(
    axis: Axes,
    name: str,
    groups: Sequence[Group],
    cases: Sequence[str],
    labels: Sequence[str],
    *,
    highest: float = 0.0,
) -> None:
    """Draws a metric: a bar for each case and scheme that has a value, with the value above it.

    The y axis reaches at least to `highest`, in the metric's unit; with 0 it is scaled automatically.
    """
    width = 0.8 / max(1, len(labels))
    top = highest
    for group in groups:
        number = labels.index(group.label)
        x = cases.index(group.case) + (number - (len(labels) - 1) / 2) * width
        top = max(top, _bar(axis, x, group, name, width * 0.9, number))
    title = metric(name).title
    axis.set_title(title[:1].upper() + title[1:] if name in BUILT_IN else title)
    axis.set_ylabel(metric(name).titled)
    axis.set_xticks(range(len(cases)), cases)
    if highest:
        axis.set_ylim(0, max(top * 1.15, highest))
    axis.grid(visible=False, axis="x")


def _bar(axis: Axes, x: float, group: Group, name: str, width: float, number: int) -> float:
    """Draws a bar with its value above it, and its interval, if there is one; returns their upper end."""
    if name not in group.measured:
        return 0.0
    unit = UNITS[metric(name).unit]
    value = group.measured[name].estimate().scaled(unit.factor)
    text = unit.shown(value.value)
    return plot.bar(axis, x, value.value, width, number, text, label=group.label, ends=value.ends, fontsize=8)


def _pauses(axis: Axes, groups: Sequence[Group], cases: Sequence[str], labels: Sequence[str]) -> None:
    """Draws pauses, and warnings and recirculations if a scheme has them: a bar for each scheme, with the
    value above it.
    """
    names = [name for name in LOSSLESS if any(name in group.measured for group in groups)]
    if names == [LOSSLESS[0]]:
        bars(axis, names[0], groups, cases, labels, highest=1.0)
        return
    width = 0.8 / max(1, len(labels))
    positions = [(case, name) for case in cases for name in names]
    highest = 1.0
    for group in groups:
        number = labels.index(group.label)
        for name in names:
            x = positions.index((group.case, name)) + (number - (len(labels) - 1) / 2) * width
            highest = max(highest, _bar(axis, x, group, name, width * 0.9, number))
    axis.set_title("Pauses, and what is done about them")
    axis.set_ylabel("number")
    ticks = [
        metric(name).title if len(cases) == 1 else f"{metric(name).title},\n{case}"
        for case, name in positions
    ]
    turned: dict[str, Any] = (
        {"rotation": 45, "ha": "right"} if plot.panel_inches(axis) < 1.1 * len(ticks) else {}
    )
    axis.set_xticks(range(len(positions)), ticks, **turned)
    axis.set_ylim(0, highest * 1.15)
    axis.grid(visible=False, axis="x")
