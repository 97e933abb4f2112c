# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of papers from their documents: bars, heat maps, curves of searches, memory.

line_charts.py draws runs as lines. A cell is one scheme in one case, and a case
is a setting in which schemes are compared; the *drawn* metrics are those that the paper's figure shows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.papers.document import Cell, Curve, Document
from tailrace.papers.grid import grid_label
from tailrace.papers.model import LINES
from tailrace.report.figures import plot
from tailrace.report.figures.ratios import panel_height, ratio_panel
from tailrace.report.paper.line_charts import gaps_chart, sizes_chart, warm_up_chart
from tailrace.report.paper.table import ratio_names, ratio_title
from tailrace.results.metrics import metric
from tailrace.results.units import UNITS

_BAR_WIDTH = 0.14
"""Width of a bar in inches, so that a number fits above it."""

_WIDE = 8.0
"""A panel at least this wide, in inches, fills a row of the figure."""

_ACROSS = 3
"""Panels of ratios beside each other."""

_MARK = "✓"
"""Behind the names of rows in which a metric is 0."""

_COLOUR_MAP = "YlGnBu"
_DARK = 0.55
"""Share of the value range above which text on a heat map is white."""


def draw_document(document: Document, files: Iterable[Path]) -> None:
    """Draws a document's figure, if it has a figure, into each of the files."""
    figure = document_figure(document)
    if figure is not None:
        for path in files:
            plot.save(figure, path)


def document_figure(document: Document) -> Figure | None:
    """The figure of a document; None if there is nothing to draw."""
    if document.chart == "none" or not any(cell.metrics for cell in document.cells):
        return None
    if document.chart == "ratios" and not any(cell.ratios for cell in document.cells):
        return None  # no pair of runs has finished
    draw = _DRAW.get(document.chart, _bars)
    with plot.style():
        return draw(document)


def search_figure(document: Document) -> Figure | None:
    """Mean FCT against the searched value, a panel per case; None without a search."""
    searched = document.kind == "runs" and document.chart not in LINES
    curves = [curve for curve in document.curves if curve.x] if searched else []
    if not curves:
        return None
    cases = list(dict.fromkeys(curve.panel for curve in curves))
    with plot.style():
        figure, axes = plot.panels(len(cases), height=3.0)
        for axis, case in zip(axes, cases, strict=True):
            # schemes that differ only in the limit of their search have the same curve
            shown = {(curve.x, curve.y): curve for curve in curves if curve.panel == case}
            for number, curve in enumerate(shown.values()):
                _line(axis, curve, number, 1e-3, 1e-3)  # ns to µs
            axis.set_title(case)
            plot.logarithmic(axis, "x")
            axis.set_xlabel("flowlet gap (µs)")
            axis.set_ylabel("mean FCT (µs)")
        return figure


# ---- ratios ----


def _ratios(document: Document) -> Figure:
    """A panel per metric, a row per scheme, a point per case. A ratio of 0 is not on the logarithmic axis."""
    names = ratio_names(document)
    cells = [cell for cell in document.cells if cell.ratios and cell.label != document.base]
    if document.rows.sort:
        cells.sort(key=lambda cell: cell.ratios.get(names[0], (math.inf,))[0])
    labels = list(dict.fromkeys(cell.label for cell in cells))
    colour, mark = document.rows.colour, document.rows.mark
    groups = {case: document.cases[case] or case for case in document.cases} or {"": ""}
    if colour:
        groups = {cell.transport: f"{colour} {cell.transport}" for cell in document.cells if cell in cells}
    marked = {cell.label for cell in cells if mark and cell.metrics.get(mark) == 0}
    rows = [f"{label} {_MARK}" if label in marked else label for label in labels]
    height = panel_height(len(labels), 1 if colour else len(groups))
    width = 4.2 if len(names) == 1 else 3.5
    figure, axes = plot.panels(len(names), width=width, height=height, columns=_ACROSS)
    for number, (axis, name) in enumerate(zip(axes, names, strict=True)):
        points = [
            (cell.label, cell.transport if colour else cell.case, cell.ratios.get(name, (0.0,)))
            for cell in cells
        ]
        ratio_panel(axis, points, labels, groups, names=rows, side_by_side=not colour)
        axis.tick_params(labelleft=number % _ACROSS == 0)  # panels beside each other have the same rows
        axis.set_xlabel(ratio_title(document, name))
        axis.set_title(metric(name).title)
    if marked:
        axes[0].plot([], [], linestyle="none", label=f"{_MARK} {metric(mark).title}: 0")
    plot.legend(figure, *axes)
    return figure


# ---- bars ----


def _bars(document: Document) -> Figure:
    """A panel per metric, with a group of bars per case and a bar per scheme."""
    labels = list(dict.fromkeys(cell.label for cell in document.cells))
    cases = list(document.cases) or [""]
    width = max(4.2, 1.4 * len(cases), _BAR_WIDTH * len(cases) * len(labels))
    drawn = document.drawn or document.metrics
    figure, axes = plot.panels(len(drawn), width=width, columns=2 if width < _WIDE else 1)
    for axis, name in zip(axes, drawn, strict=True):
        entry = metric(name)
        unit = UNITS[entry.unit]
        bar_width = 0.84 / len(labels)  # adjacent cases are 1 apart
        for cell in document.cells:
            if name not in cell.metrics:
                continue
            number = labels.index(cell.label)
            x = cases.index(cell.case) + (number - (len(labels) - 1) / 2) * bar_width
            value = cell.metrics[name] * unit.factor
            interval = cell.intervals.get(name)
            ends = None if interval is None else (interval[0] * unit.factor, interval[1] * unit.factor)
            plot.bar(
                axis,
                x,
                value,
                bar_width * 0.92,
                number,
                unit.without_name(cell.metrics[name]),
                label=cell.label,
                ends=ends,
                va="bottom",  # otherwise a vertical number would overlap its interval
                fontsize=7,
                rotation=90 if len(cases) * len(labels) > 10 else 0,
            )
        axis.set_title(entry.title)
        axis.set_ylabel(metric(name).titled)
        # one word per line, so that adjacent names do not overlap
        names = [case.replace(" ", "\n") for case in cases] if len(cases) > 1 else [""]
        axis.set_xticks(range(len(cases)), names)
        axis.margins(y=0.18)
        axis.set_ylim(bottom=0)
        axis.grid(visible=False, axis="x")
    plot.legend(figure, *axes)
    return figure


# ---- heat maps ----


def _heatmaps(document: Document) -> Figure:
    """A panel per case and drawn metric, with the metric's value at every combination of two options."""
    (x_option, columns), (y_option, rows) = document.axes.items()
    cases = list(document.cases) or [""]
    names = document.drawn or document.metrics[:1]
    figure, axes = plot.panels(len(cases) * len(names), width=3.6, height=2.5, columns=max(2, len(names)))
    for axis, (case, name) in zip(axes, itertools.product(cases, names), strict=True):
        unit = UNITS[metric(name).unit]
        cells = {cell.label: cell for cell in document.cells if cell.case == case}
        values = [
            [_value(cells, grid_label([x_option, y_option], (x, y)), name, unit.factor) for x in columns]
            for y in rows
        ]
        _heatmap(axis, values)
        titles = [document.cases.get(case) or case, *_outside_grid(document, cells, name)]
        titles += [metric(name).titled] if len(names) > 1 else []
        axis.set_title("\n".join(filter(None, titles)))
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(document.axis_titles.get(x_option, x_option))
        axis.set_ylabel(document.axis_titles.get(y_option, y_option))
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
    if len(names) == 1:
        figure.supxlabel(f"cells: {metric(names[0]).titled}", fontsize=9)
    return figure


def _outside_grid(document: Document, cells: Mapping[str, Cell], name: str) -> list[str]:
    """The values of the schemes that are not in the grid, as text for comparison."""
    (x_option, columns), (y_option, rows) = document.axes.items()
    of_grid = {grid_label([x_option, y_option], values) for values in itertools.product(columns, rows)}
    unit = UNITS[metric(name).unit]
    return [
        f"{label}: {unit.text(cell.metrics[name])}"
        for label, cell in cells.items()
        if label not in of_grid and name in cell.metrics
    ]


def _value(cells: dict[str, Cell], label: str, name: str, factor: float) -> float:
    cell = cells.get(label)
    return math.nan if cell is None else cell.metrics.get(name, math.nan) * factor


def _heatmap(axis: Axes, values: list[list[float]]) -> None:
    """Draws coloured cells with their values; larger values are darker."""
    numbers = [value for row in values for value in row if not math.isnan(value)]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    axis.imshow(values, cmap=mpl.colormaps[_COLOUR_MAP], aspect="auto", vmin=low, vmax=high)
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            dark = high > low and (value - low) / (high - low) > _DARK
            text = "-" if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            axis.text(x, y, text, ha="center", va="center", color="white" if dark else "#101820", fontsize=8)


# ---- lines ----


def _memory(document: Document) -> Figure:
    """The memory model's panels: lines against flows per host, or bars if each curve has a single point."""
    panels = list(document.cases)
    figure, axes = plot.panels(len(panels), width=5.2, height=3.2, columns=2)
    for axis, panel in zip(axes, panels, strict=True):
        curves = [curve for curve in document.curves if curve.panel == panel]
        kib = UNITS["KiB"].factor
        if all(len(curve.x) == 1 for curve in curves):
            axis.barh(
                [curve.label for curve in curves],
                [curve.y[0] * kib for curve in curves],
                color=[plot.colour(number) for number in range(len(curves))],
            )
            plot.logarithmic(axis, "x")
            axis.set_xlabel("memory (KiB)")
            axis.invert_yaxis()
        else:
            _by_algorithm(axis, curves)
            plot.logarithmic(axis, "x")
            plot.logarithmic(axis, "y")
            axis.set_xlabel("flows a host")
            axis.set_ylabel("memory (KiB)")
        axis.set_title(document.cases[panel] or panel)
    return figure


def _endpoints(document: Document) -> Figure:
    """A panel per metric: a line per kind of topology, against the number of endpoints."""
    names = list(dict.fromkeys(curve.panel for curve in document.curves))
    figure, axes = plot.panels(len(names), width=4.6, height=3.2, columns=2)
    for axis, name in zip(axes, names, strict=True):
        entry = metric(name)
        unit = UNITS[entry.unit]
        for number, curve in enumerate(curve for curve in document.curves if curve.panel == name):
            _line(axis, curve, number, 1.0, unit.factor)
        axis.set_xlabel("endpoints")
        axis.set_ylabel(metric(name).titled)
        axis.set_ylim(bottom=0)
    plot.legend(figure, *axes)
    return figure


def _by_algorithm(axis: Axes, curves: list[Curve]) -> None:
    """Draws curves: a colour for each varied parameter, a line style for each algorithm, a legend of both."""
    algorithms = list(dict.fromkeys(curve.label.partition(" ")[0] for curve in curves))
    varied = list(dict.fromkeys(curve.label.partition(" ")[2] for curve in curves))
    for curve in curves:
        algorithm, _, value = curve.label.partition(" ")
        axis.plot(
            curve.x,
            [size * UNITS["KiB"].factor for size in curve.y],
            color=plot.colour(varied.index(value)),
            linestyle=plot.line(algorithms.index(algorithm)),
            linewidth=1.5,
        )
    for number, name in enumerate(algorithms):
        axis.plot([], [], color="#7A7A7A", linestyle=plot.line(number), label=name)
    for number, name in enumerate(varied):
        axis.plot([], [], color=plot.colour(number), label=name)
    axis.legend(fontsize=7, frameon=False, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _line(axis: Axes, curve: Curve, number: int, x_factor: float, y_factor: float) -> None:
    axis.plot(
        [x * x_factor for x in curve.x],
        [y * y_factor for y in curve.y],
        color=plot.colour(number),
        linestyle=plot.line(number // len(plot.COLOURS)),
        marker="o",
        markersize=3,
        linewidth=1.4,
        label=curve.label,
    )


_DRAW = {
    "ratios": _ratios,
    "heatmap": _heatmaps,
    "memory": _memory,
    "endpoints": _endpoints,
    "sizes": sizes_chart,
    "gaps": gaps_chart,
    "warm-up": warm_up_chart,
}
"""By kind of chart, the function that draws it; other charts are bars."""
