# SPDX-License-Identifier: Apache-2.0
"""A panel of ratios to a base: a row per scheme, a point per case, a line at 1, where nothing differs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from tailrace.report.figures import plot

_MARKERS = "osD^vP"
ROW_INCHES, CASE_INCHES, MARGIN_INCHES = 0.12, 0.09, 1.0
_TICKS = (
    (1.5, (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5)),
    (4.0, (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 4)),
    (40.0, (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20)),
    (math.inf, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)),
)
"""(limit, ticks): the ticks of an axis whose largest value is at most `limit` times its smallest value."""

NO_DIFFERENCE = "no difference"
Point = tuple[str, str, Sequence[float]]
"""A scheme's label, a case, and the ratio, followed by the ends of its interval, if there is one."""


def panel_height(labels: int, cases: int) -> float:
    """The height of a panel in inches."""
    return MARGIN_INCHES + labels * (ROW_INCHES + CASE_INCHES * cases)


def ratio_panel(
    axis: Axes,
    points: Iterable[Point],
    labels: Sequence[str],
    cases: Mapping[str, str],
    *,
    names: Sequence[str] = (),
    line: str | None = None,
    side_by_side: bool = True,
) -> None:
    """Draws ratios; the axis is logarithmic, so a ratio of 0 is left out.

    Args:
        axis: where to draw.
        points: the ratios.
        labels: the schemes, a row each.
        cases: the cases, with their titles.
        names: the names of the rows, without which they are the labels.
        line: the name of the line at 1 in the legend.
        side_by_side: whether the points of a row have places of their own, by case.
    """
    drawn, keys = [1.0], list(cases)
    for label, case, (value, *ends) in points:
        if min((value, *ends)) <= 0 or label not in labels:
            continue
        number = keys.index(case)
        y = labels.index(label) + side_by_side * 0.7 * (number - (len(keys) - 1) / 2) / len(keys)
        drawn += [value, *ends]
        if ends:
            axis.plot(ends, (y, y), color=plot.colour(number), linewidth=1.4)
        axis.plot(
            value,
            y,
            color=plot.colour(number),
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            linestyle="none",
            label=cases[case],
        )
    axis.axvline(1.0, color=plot.colour(-1), linewidth=1.0, label=line)
    plot.logarithmic(axis, "x")
    low, high = min(drawn) / 1.05, max(drawn) * 1.05
    ticks = next(ticks for most, ticks in _TICKS if high <= most * low)
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlim(low, high)
    axis.set_yticks(range(len(labels)), names or labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
