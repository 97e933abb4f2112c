# SPDX-License-Identifier: Apache-2.0
"""What several figures draw: a panel for each case, distributions, lines over time.

A case is `clean`, or the faults' names; a label is a scheme's name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.report.figures import plot
from tailrace.report.figures.plot import Look
from tailrace.results.estimates import Group, SeedValues
from tailrace.results.statistics import cumulative
from tailrace.spec.units import time_unit

MOST_LINES = len(plot.COLOURS)

_MOST_POINTS, _BAND_POINTS = 2000, 200
"""Maximum number of points of a distribution, since more would overlap, and of the band around it."""

Numbered = Sequence[tuple[int, Group]]
"""The groups of a case, each with the index of its scheme."""


def cases_and_labels(groups: Sequence[Group]) -> tuple[list[str], list[str]]:
    """The cases and the labels of groups, in the order of their first appearance."""
    cases = list(dict.fromkeys(group.case for group in groups))
    return cases, list(dict.fromkeys(group.label for group in groups))


def of_case(groups: Sequence[Group], case: str) -> Numbered:
    """The groups of a case, numbered by their schemes."""
    _, labels = cases_and_labels(groups)
    return [(labels.index(group.label), group) for group in groups if group.case == case]


def by_case(groups: Sequence[Group], look: Look, draw: Callable[[Axes, Numbered, Look], None]) -> Figure:
    """A panel per case, which `draw` draws."""
    cases, _ = cases_and_labels(groups)
    with plot.style():
        figure, axes = plot.panels(len(cases), look)
        for axis, case in zip(axes, cases, strict=True):
            axis.set_title(case)
            draw(axis, of_case(groups, case), look)
        plot.legend(figure, *axes)
    return figure


def over_time(
    lines: Sequence[tuple[str, Sequence[tuple[int, float]]]],
    ylabel: str,
    look: Look,
    *,
    columns: int = 5,
    **style: Any,
) -> Figure:
    """Lines over time, each with its name and its points (time in ns, value).

    `columns` are those of the legend; `style` has properties of all lines.
    """
    unit_ns, unit = time_unit(max(time_ns for _, points in lines for time_ns, _ in points))
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=7.5)
        for number, (name, points) in enumerate(lines):
            x, y = zip(*((time_ns / unit_ns, value) for time_ns, value in points), strict=True)
            axis.plot(
                x, y, label=name, **{"color": plot.colour(number), "linestyle": plot.line(number)} | style
            )
        axis.set_xlabel(f"virtual time ({unit})")
        axis.set_ylabel(ylabel)
        look.scale(axis, "y", [value for _, points in lines for _, value in points])
        plot.legend(figure, axis, columns=columns)
    return figure


def shares(
    axis: Axes,
    groups: Numbered,
    values: Callable[[Group], Sequence[Sequence[float | None]]],
    labels: tuple[str, str],
    look: Look,
    **style: Any,
) -> None:
    """Draws the distribution of the values of each scheme, with a band: the intervals over the seeds.

    Args:
        axis: where to draw.
        groups: the schemes.
        values: returns the values of each seed; None for a flow that has none, since it did not finish.
        labels: of both axes.
        look: what the user chose.
        style: properties of the lines.
    """
    drawn: list[float] = []
    for number, group in groups:
        of_seeds = values(group)
        finished = [sorted(value for value in each if value is not None) for each in of_seeds]
        totals = [len(each) for each in of_seeds]
        pooled = sorted(value for each in finished for value in each)
        _distribution(axis, pooled, sum(totals), number, label=group.label, **style)
        x = list(dict.fromkeys(pooled[:: len(pooled) // _BAND_POINTS + 1])) if all(totals) else []
        plot.band(axis, x, (_share_ends(finished, totals, at) for at in x), number)
        drawn += pooled
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    axis.set_ylim(0, 1.02)
    look.scale(axis, "x", drawn)


def _share_ends(of_seeds: Sequence[Sequence[float]], totals: Sequence[int], most: float) -> plot.Ends:
    """The interval of the share of values of at most `most`, of sorted values by seed; None without it."""
    of_each = [bisect_right(values, most) / total for values, total in zip(of_seeds, totals, strict=True)]
    ends = SeedValues(tuple(of_each)).estimate().ends
    return None if ends is None else (ends[0], min(ends[1], 1.0))


def _distribution(axis: Axes, values: Sequence[float], total: int, number: int, **style: Any) -> None:
    """Draws the share of `total` values that are at most as large, for the scheme with the index `number`."""
    x, y = cumulative(values, total)
    step = len(x) // _MOST_POINTS + 1
    if step > 1:
        x, y = [*x[::step], x[-1]], [*y[::step], y[-1]]
    colour, dashes = plot.colour(number), plot.line(number)
    axis.step([*x[:1], *x], [0.0, *y] if x else [], where="post", color=colour, linestyle=dashes, **style)
