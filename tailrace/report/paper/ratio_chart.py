# SPDX-License-Identifier: Apache-2.0
"""The chart of ratios to a base scheme: a panel per metric, a row per scheme, a point per case."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tailrace.papers.document import Document
from tailrace.report.figures import plot
from tailrace.report.paper.table import ratio_names, ratio_title
from tailrace.results.metrics import metric

_MARKERS = "osD^vP"
_ROW_INCHES, _CASE_INCHES, _MARGIN_INCHES = 0.12, 0.09, 1.0
_TICKS = (
    (1.5, (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5)),
    (4.0, (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 4)),
    (40.0, (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20)),
    (math.inf, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)),
)
"""(limit, ticks): the ticks of an axis whose largest value is at most `limit` times its smallest value."""


def ratios_chart(document: Document) -> Figure:
    """The chart. The axis is logarithmic, so a ratio of 0 is shown only in the table."""
    labels = list(
        dict.fromkeys(cell.label for cell in document.cells if cell.ratios and cell.label != document.base)
    )
    cases = list(document.cases) or [""]
    names = ratio_names(document)
    height = _MARGIN_INCHES + len(labels) * (_ROW_INCHES + _CASE_INCHES * len(cases))
    figure, axes = plot.panels(len(names), width=4.2, height=height, columns=3)
    for axis, name in zip(axes, names, strict=True):
        _panel(axis, document, name, labels, cases)
    plot.legend(figure, *axes)
    return figure


def _panel(axis: Axes, document: Document, name: str, labels: list[str], cases: list[str]) -> None:
    drawn = [1.0]
    for cell in document.cells:
        if min(cell.ratios.get(name, (0.0,))) <= 0 or cell.label not in labels:
            continue
        number = cases.index(cell.case)
        y = labels.index(cell.label) + 0.7 * (number - (len(cases) - 1) / 2) / len(cases)
        value, *ends = cell.ratios[name]
        drawn += cell.ratios[name]
        if ends:
            axis.plot(ends, (y, y), color=plot.colour(number), linewidth=1.4)
        axis.plot(
            value,
            y,
            color=plot.colour(number),
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            linestyle="none",
            label=document.cases.get(cell.case) or cell.case,
        )
    axis.axvline(1.0, color=plot.colour(-1), linewidth=1.0)
    plot.logarithmic(axis, "x")
    low, high = min(drawn) / 1.05, max(drawn) * 1.05
    ticks = next(ticks for most, ticks in _TICKS if high <= most * low)
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlim(low, high)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlabel(ratio_title(document, name))
    axis.set_title(metric(name).title)
    axis.grid(visible=False, axis="y")
