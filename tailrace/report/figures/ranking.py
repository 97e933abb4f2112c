# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison of many schemes: a row a scheme, for nobody tells so many lines apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.report.figures import plot
from tailrace.results.over_seeds import Group, Measure, flows_of, groups
from tailrace.results.statistics import tail_name, tail_percent

if TYPE_CHECKING:
    from tailrace.results.result import Result

_ROW_INCHES = 0.26
_MARGIN_INCHES = 1.1
_PANEL_INCHES = 3.0
_NAME_INCHES = 0.8
_WIDTH = 0.84


@dataclass(frozen=True, slots=True)
class _Panel:
    """What a panel shows of a group of runs; None where it was not observed. `ratio`: at least 1, and maybe
    large.
    """

    title: str
    measure: Callable[[Group], Measure | None]
    ratio: bool = False


def _slowdown(percent: int) -> Callable[[Group], Measure | None]:
    return lambda group: group.percentile(lambda row: row.slowdown, percent)


def _out_of_order(result: Result) -> float | None:
    share = result.summary.packets.out_of_order_fraction
    return None if isinstance(share, UnsetType) else 100 * share


def _pauses(result: Result) -> float | None:
    pfc = result.summary.pfc
    return None if isinstance(pfc, UnsetType) else float(pfc["pauses"])


def _panels(percent: int) -> tuple[_Panel, ...]:
    """With this percentile as the tail."""
    return (
        _Panel("slowdown, median (×)", _slowdown(50), ratio=True),
        _Panel(f"slowdown, {tail_name(percent)} (×)", _slowdown(percent), ratio=True),
        _Panel("packets out of order (%)", lambda group: group.mean(_out_of_order)),
        _Panel("PFC pauses", lambda group: group.mean(_pauses)),
    )


def ranking_figure(results: Sequence[Result]) -> Figure:
    """A panel for each thing that was observed: a row a scheme, from above, and in it a bar a case."""
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    found = groups(results)
    percent = tail_percent(flows_of(found))
    shown = [panel for panel in _panels(percent) if any(panel.measure(group) for group in found)]
    with plot.style():
        figure, axes = plot.panels(
            len(shown),
            width=_PANEL_INCHES,
            height=_MARGIN_INCHES + _ROW_INCHES * len(labels) * len(cases),
            columns=len(shown),
        )
        figure.set_figwidth(figure.get_figwidth() + _NAME_INCHES)
        for axis, panel in zip(axes, shown, strict=True):
            _rows(axis, panel, found, cases, labels)
        for axis in axes[1:]:
            axis.set_yticklabels([])
        plot.legend(figure, axes[0])
    return figure


def _rows(
    axis: Axes, panel: _Panel, found: Sequence[Group], cases: Sequence[str], labels: Sequence[str]
) -> None:
    height = _WIDTH / len(cases)
    highest = 0.0
    for group in found:
        measure = panel.measure(group)
        if measure is None:
            continue
        one = measure.estimate()
        number = cases.index(group.case)
        y = labels.index(group.label) + (number - (len(cases) - 1) / 2) * height
        axis.barh(y, one.value, height * 0.9, color=plot.colour(number), label=group.case)
        if one.ends is not None:
            plot.interval(axis, one.ends, y=y)
        text = f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.3g}"
        right = one.value if one.ends is None else max(one.value, one.ends[1])
        axis.annotate(text, (right, y), (2, 0), textcoords="offset points", va="center", fontsize=7)
        highest = max(highest, right)
    axis.set_title(panel.title)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    if panel.ratio:
        plot.logarithmic(axis, "x")
        axis.set_xlim(1, max(highest * highest**0.2, 2))
    else:
        axis.set_xlim(0, max(highest * 1.2, 1))
    axis.grid(visible=False, axis="y")
