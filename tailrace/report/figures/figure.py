# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: distributions of completion times, shares of packets out of order and, in
lossless networks, PFC pauses, warnings and recirculations.

A case is `clean`, or the faults' names; a label is a scheme's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.report.figures import plot
from tailrace.report.figures.kind import FINISHED, kind
from tailrace.report.figures.panels import MOST_LINES, Numbered, cases_and_labels, of_case, shares
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.report.figures.ranking import ranking_figure
from tailrace.results.estimates import Group, comparison_groups
from tailrace.results.metrics import BUILT_IN, metric, plugin_metrics
from tailrace.results.result import max_fct_ns
from tailrace.results.results import Results
from tailrace.results.rows import measured_rows
from tailrace.results.units import UNITS
from tailrace.spec.units import time_unit

LOSSLESS = ("pauses", "warnings", "recirculations")
"""Metrics of lossless networks; they share a panel."""

MOST_METRICS = 4
"""Maximum number of metrics of plug-ins that are drawn, each in a panel; tables contain all of them."""


def draw(results: Results, files: Iterable[Path]) -> None:
    """Draws the figure into each of the files."""
    for path in files:
        figure = comparison.draw(results, NATURAL)
        assert figure is not None
        plot.save(figure, path)


@kind("Completion times, packets out of order, PFC pauses, metrics of plug-ins", FINISHED)
def comparison(results: Results, look: Look) -> Figure:
    """The figure of a comparison.

    Its panels are: completion times for each case, shares out of order, pauses (if there are any), and each
    metric of a plug-in. With more than MOST_LINES schemes the figure is that of ranking.py, with a row for
    each scheme.
    """
    groups = comparison_groups(results.results)
    cases, labels = cases_and_labels(groups)
    many = len(labels) > MOST_LINES
    figure = ranking_figure(groups, cases, labels, look) if many else _panels(groups, cases, look)
    # so that the figure is also readable on a dark page
    figure.set_facecolor("white")
    return figure


def _panels(groups: Sequence[Group], cases: Sequence[str], look: Look) -> Figure:
    observed = {name for group in groups for name in group.measured}
    metrics: list[tuple[str, ...]] = [("out_of_order_share",)]
    if LOSSLESS[0] in observed:
        metrics.append(tuple(name for name in LOSSLESS if name in observed))
    metrics += [(name,) for name in [name for name in plugin_metrics() if name in observed][:MOST_METRICS]]
    count = len(cases) + len(metrics)
    with plot.style():
        figure, axes = plot.panels(count, look, height=3.6, columns=count)
        for axis, case in zip(axes, cases, strict=False):
            completion(axis, of_case(groups, case), look)
        for axis, names in zip(axes[len(cases) :], metrics, strict=True):
            bars(axis, names, groups)
        plot.legend(figure, axes[0])
    return figure


def completion(axis: Axes, groups: Numbered, look: Look) -> None:
    """One line per scheme: the share of the measured flows of all seeds that had finished after a time."""
    unit_ns, unit = time_unit(max_fct_ns([result for _, group in groups for result in group.results]))

    def times(group: Group) -> list[list[float | None]]:
        return [
            [None if row.fct_ns is None else row.fct_ns / unit_ns for row in measured_rows(result.rows)]
            for result in group.results
        ]

    labels = f"flow completion time ({unit})", "share of flows"
    shares(axis, groups, times, labels, look, linewidth=1.8)
    axis.set_title(f"Flow completion, {groups[0][1].case}")


def bars(axis: Axes, names: Sequence[str], groups: Sequence[Group]) -> None:
    """Draws metrics: a bar for each case, metric and scheme that has a value, with the value above it.

    The y axis of built-in metrics reaches at least to 1.
    """
    cases, labels = cases_and_labels(groups)
    width = 0.8 / max(1, len(labels))
    positions = [(case, name) for case in cases for name in names]
    highest = 1.0
    for group in groups:
        number = labels.index(group.label)
        for name in names:
            if name in group.measured:
                x = positions.index((group.case, name)) + (number - (len(labels) - 1) / 2) * width
                highest = max(highest, _bar(axis, x, group, name, width * 0.9, number))
    title, ylabel, ticks = metric(names[0]).title, metric(names[0]).titled, cases
    turned: dict[str, Any] = {}
    if len(names) > 1:
        title, ylabel = "Pauses, and what is done about them", "number"
        each_case = "" if len(cases) == 1 else ",\n{}"
        ticks = [metric(name).title + each_case.format(case) for case, name in positions]
        if plot.panel_inches(axis) < 1.1 * len(ticks):
            turned = {"rotation": 45, "ha": "right"}
    axis.set_xticks(range(len(positions)), ticks, **turned)
    if names[0] in BUILT_IN:
        title = title[:1].upper() + title[1:]
        axis.set_ylim(0, highest * 1.15)
    axis.set_title(title)
    axis.set_ylabel(ylabel)
    axis.grid(visible=False, axis="x")


def _bar(axis: Axes, x: float, group: Group, name: str, width: float, number: int) -> float:
    """Draws a bar with its value above it, and its interval, if there is one; returns their upper end."""
    unit = UNITS[metric(name).unit]
    value = group.measured[name].estimate().scaled(unit.factor)
    text = unit.shown(value.value)
    return plot.bar(axis, x, value.value, width, number, text, label=group.label, ends=value.ends, fontsize=8)
