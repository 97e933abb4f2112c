# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison of many schemes: a row per scheme, since many lines are hard to distinguish.

A case is `clean`, or the faults' names; a label is a scheme's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.report.figures import plot
from tailrace.report.figures.plot import Look
from tailrace.results.estimates import Group, fewest_flows, tail_metric
from tailrace.results.metrics import metric
from tailrace.results.statistics import tail_percent
from tailrace.results.units import UNITS

_ROW_INCHES = 0.26
_MARGIN_INCHES = 1.1
_PANEL_INCHES = 3.0
_NAME_INCHES = 0.8
_ROW_SHARE = 0.84  # share of a row's height that its bars fill


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
