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
from tailrace.results.estimates import Group, comparison_groups, fewest_flows, tail_metric
from tailrace.results.metrics import BUILT_IN, metric, plugin_metrics
from tailrace.results.result import max_fct_ns
from tailrace.results.results import Results
from tailrace.results.rows import measured_rows
from tailrace.results.statistics import tail_percent
from tailrace.results.units import UNITS
from tailrace.spec.units import time_unit

LOSSLESS = ("pauses", "warnings", "recirculations")
"""Metrics of lossless networks; they share a panel."""

MOST_METRICS = 4
"""Maximum number of metrics of plug-ins that are drawn, each in a panel; tables contain all of them."""

_ROW_INCHES = 0.26
_MARGIN_INCHES = 1.1
_PANEL_INCHES = 3.0
_NAME_INCHES = 0.8
_ROW_SHARE = 0.84  # share of a row's height that its bars fill


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
    metric of a plug-in. With more than MOST_LINES schemes, whose lines would be hard to distinguish, there
    is a row for each scheme instead (ranking_figure).
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


def _shown_metrics(groups: Sequence[Group]) -> list[str]:
    """The metrics to show: those for which at least one group has a value."""
    tail = tail_metric("slowdown_p99", tail_percent(fewest_flows(groups)))
    names = ("slowdown_p50", tail, "out_of_order_share", "pauses")
    return [name for name in names if any(name in group.measured for group in groups)]


def ranking_figure(
    groups: Sequence[Group], cases: Sequence[str], labels: Sequence[str], look: Look
) -> Figure:
    """A panel per measured metric; a panel has a row per scheme, and a row has a bar per case."""
    shown = _shown_metrics(groups)
    with plot.style():
        figure, axes = plot.panels(
            len(shown),
            look,
            width=_PANEL_INCHES,
            height=_MARGIN_INCHES + _ROW_INCHES * len(labels) * len(cases),
            columns=len(shown),
            scaled=False,
        )
        if look.width is None:
            figure.set_figwidth(figure.get_figwidth() + _NAME_INCHES)
        for axis, name in zip(axes, shown, strict=True):
            _rows(axis, name, groups, cases, labels)
        for axis in axes:
            if (place := axis.get_subplotspec()) is not None and not place.is_first_col():
                axis.set_yticklabels([])
        plot.legend(figure, axes[0])
    return figure


def _rows(
    axis: Axes, name: str, groups: Sequence[Group], cases: Sequence[str], labels: Sequence[str]
) -> None:
    height = _ROW_SHARE / len(cases)
    highest = 0.0
    unit = UNITS[metric(name).unit]
    for group in groups:
        if name not in group.measured:
            continue
        value = group.measured[name].estimate().scaled(unit.factor)
        number = cases.index(group.case)
        y = labels.index(group.label) + (number - (len(cases) - 1) / 2) * height
        axis.barh(y, value.value, height * 0.9, color=plot.colour(number), label=group.case)
        if value.ends is not None:
            plot.interval(axis, value.ends, y=y)
        text = unit.shown(value.value)
        right = value.value if value.ends is None else max(value.value, value.ends[1])
        axis.annotate(text, (right, y), (2, 0), textcoords="offset points", va="center", fontsize=7)
        highest = max(highest, right)
    axis.set_title(metric(name).titled)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    if metric(name).unit == "times":  # values are at least 1, and may be large
        plot.logarithmic(axis, "x")
        axis.set_xlim(1, max(highest * highest**0.2, 2))
    else:
        axis.set_xlim(0, max(highest * 1.2, 1))
    axis.grid(visible=False, axis="y")
