# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: distributions of completion times, shares of packets out of order, and, where
the network is lossless, pauses and what is done about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.report.figures import plot
from tailrace.report.figures.ranking import ranking_figure
from tailrace.results.comparison import max_fct_ns
from tailrace.results.metrics import Metric
from tailrace.results.over_seeds import Measure, groups
from tailrace.results.rows import measured_rows
from tailrace.results.statistics import cumulative
from tailrace.results.summary import Summary
from tailrace.results.table import LOSSLESS, has_pfc, lossless_counts, own_metrics
from tailrace.results.units import UNITS
from tailrace.spec.units import time_unit

if TYPE_CHECKING:
    from tailrace.results.result import Result

MOST_LINES = len(plot.COLOURS)

MOST_METRICS = 4
"""From outside, each with a panel of its own; tables have all of them."""


def draw(results: Sequence[Result], files: Iterable[Path]) -> None:
    """Draw the figure into each of the files."""
    for path in files:
        plot.save(comparison_figure(results), path)


def comparison_figure(results: Sequence[Result]) -> Figure:
    """A panel of completion times for each case, one of shares out of order, one of pauses, if any, and one
    of each metric from outside.

    Of more than MOST_LINES schemes a row each: ranking.py.
    """
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    figure = ranking_figure(results) if len(labels) > MOST_LINES else _panels(results, cases, labels)
    # what is seen on a dark page, too
    figure.set_facecolor("white")
    return figure


def _panels(results: Sequence[Result], cases: Sequence[str], labels: Sequence[str]) -> Figure:
    with plot.style():
        own = list(own_metrics(results).items())[:MOST_METRICS]
        lossless = has_pfc(results)
        count = len(cases) + 1 + lossless + len(own)
        figure, axes = plot.panels(count, height=3.6, columns=count)
        for axis, case in zip(axes, cases, strict=False):
            _completion(axis, case, [result for result in results if result.case == case], labels)
        _out_of_order(axes[len(cases)], results, cases, labels)
        if lossless:
            _pauses(axes[len(cases) + 1], results, cases, labels)
        for axis, (name, metric) in zip(axes[count - len(own) :], own, strict=False):
            _metric(axis, name, metric, results, cases, labels)
        plot.legend(figure, axes[0])
    return figure


def _completion(axis: Axes, case: str, results: Sequence[Result], labels: Sequence[str]) -> None:
    """One line a scheme: the share of all measured flows, of all seeds, that had finished after some time."""
    unit_ns, unit = time_unit(max_fct_ns(results))
    for group in groups(results):
        number = labels.index(group.label)
        rows = [row for result in group.results for row in measured_rows(result.rows)]
        times = [row.fct_ns / unit_ns for row in rows if row.fct_ns is not None]
        x, y = cumulative(times, len(rows))
        axis.step(
            [x[0], *x] if x else [],
            [0.0, *y] if y else [],
            where="post",
            label=group.label,
            color=plot.colour(number),
            linestyle=plot.line(number),
            linewidth=1.8,
        )
    axis.set_title(f"Flow completion, {case}")
    axis.set_xlabel(f"flow completion time ({unit})")
    axis.set_ylabel("share of flows")
    axis.set_ylim(0, 1.02)
    axis.set_xlim(left=0)


def _out_of_order(axis: Axes, results: Sequence[Result], cases: Sequence[str], labels: Sequence[str]) -> None:
    """One bar a case and scheme, with its value above it; no bar where nothing was observed."""
    width = 0.8 / max(1, len(labels))
    highest = 0.0
    for group in groups(results):
        found = group.mean(lambda result: _percent(result.summary))
        if found is None:
            continue
        number = labels.index(group.label)
        x = cases.index(group.case) + (number - (len(labels) - 1) / 2) * width
        highest = max(highest, _bar(axis, x, found, width * 0.9, number, "{:.2g}".format))
    axis.set_title("Out-of-order packets")
    axis.set_ylabel("first transmissions out of order (%)")
    axis.set_xticks(range(len(cases)), cases)
    axis.set_ylim(0, max(highest * 1.15, 1))
    axis.grid(visible=False, axis="x")


def _percent(summary: Summary) -> float | None:
    share = summary.packets.out_of_order_fraction
    return None if isinstance(share, UnsetType) else 100 * share


def _bar(
    axis: Axes,
    x: float,
    measure: Measure,
    width: float,
    number: int,
    text: Callable[[float], str],
    factor: float = 1.0,
) -> float:
    """A bar with its value above it, and its interval if there is one; returns how high it reaches."""
    found = measure.estimate()
    ends = None if found.ends is None else (found.ends[0] * factor, found.ends[1] * factor)
    height = found.value * factor
    plot.bar(axis, x, height, width, number, ends=ends)
    top = height if ends is None else max(height, ends[1])
    axis.annotate(text(height), (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=8)
    return top


def _metric(
    axis: Axes,
    name: str,
    metric: Metric,
    results: Sequence[Result],
    cases: Sequence[str],
    labels: Sequence[str],
) -> None:
    """A metric from outside: a bar a case and scheme, with its value above it."""
    width = 0.8 / max(1, len(labels))
    unit = UNITS[metric.unit]
    for group in groups(results):
        found = group.mean(lambda result: (result.summary.metrics or {}).get(name))
        if found is None:
            continue
        number = labels.index(group.label)
        x = cases.index(group.case) + (number - (len(labels) - 1) / 2) * width
        _bar(axis, x, found, width * 0.9, number, unit.shown, unit.factor)
    axis.set_title(metric.title)
    axis.set_ylabel(metric.titled)
    axis.set_xticks(range(len(cases)), cases)
    axis.grid(visible=False, axis="x")


def _pauses(axis: Axes, results: Sequence[Result], cases: Sequence[str], labels: Sequence[str]) -> None:
    """Pauses, warnings and recirculations: a bar a scheme, with its value above it."""
    width = 0.8 / max(1, len(labels))
    kinds = [column.title for column in LOSSLESS]
    places = [(case, kind) for case in cases for kind in kinds]
    highest = 1.0
    for group in groups(results):
        number = labels.index(group.label)
        for place, kind in enumerate(kinds):
            found = group.mean(lambda result, place=place: _lossless(result.summary, place))  # type: ignore[misc]
            if found is None:
                continue
            x = places.index((group.case, kind)) + (number - (len(labels) - 1) / 2) * width
            highest = max(highest, _bar(axis, x, found, width * 0.9, number, "{:,.0f}".format))
    axis.set_title("Pauses, and what is done about them")
    axis.set_ylabel("number")
    names = [kind if len(cases) == 1 else f"{kind},\n{case}" for case, kind in places]
    axis.set_xticks(range(len(places)), names)
    axis.set_ylim(0, highest * 1.15)
    axis.grid(visible=False, axis="x")


def _lossless(summary: Summary, place: int) -> int | None:
    value = lossless_counts(summary)[place]
    return None if isinstance(value, UnsetType) else value
