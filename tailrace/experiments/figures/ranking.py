# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison of many schemes: a row a scheme, for nobody tells so many lines apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.experiments.figures import plot
from tailrace.experiments.results.summary import Summary

if TYPE_CHECKING:
    from tailrace.experiments.results.result import Result

_ROW_INCHES = 0.26
_MARGIN_INCHES = 1.1
_PANEL_INCHES = 3.0
_NAME_INCHES = 0.8
_WIDTH = 0.84


@dataclass(frozen=True, slots=True)
class _Panel:
    """What a panel shows of a run; None where it was not observed. `ratio`: at least 1, and maybe large."""

    title: str
    value: Callable[[Summary], float | None]
    ratio: bool = False


def _slowdown(name: str) -> Callable[[Summary], float | None]:
    def value(summary: Summary) -> float | None:
        found = summary.slowdown
        return None if isinstance(found, UnsetType) else float(getattr(found, name))

    return value


def _out_of_order(summary: Summary) -> float | None:
    share = summary.packets.out_of_order_fraction
    return None if isinstance(share, UnsetType) else 100 * share


def _pauses(summary: Summary) -> float | None:
    return None if isinstance(summary.pfc, UnsetType) else float(summary.pfc["pauses"])


_PANELS = (
    _Panel("slowdown, median (×)", _slowdown("p50"), ratio=True),
    _Panel("slowdown, p99 (×)", _slowdown("p99"), ratio=True),
    _Panel("packets out of order (%)", _out_of_order),
    _Panel("PFC pauses", _pauses),
)


def ranking_figure(results: Sequence[Result]) -> Figure:
    """A panel for each thing that was observed: a row a scheme, from above, and in it a bar a case."""
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    shown = [panel for panel in _PANELS if any(panel.value(result.summary) is not None for result in results)]
    with plot.style():
        figure, axes = plot.panels(
            len(shown),
            width=_PANEL_INCHES,
            height=_MARGIN_INCHES + _ROW_INCHES * len(labels) * len(cases),
            columns=len(shown),
        )
        figure.set_figwidth(figure.get_figwidth() + _NAME_INCHES)
        for axis, panel in zip(axes, shown, strict=True):
            _rows(axis, panel, results, cases, labels)
        for axis in axes[1:]:
            axis.set_yticklabels([])
        plot.legend(figure, axes[0])
    return figure


def _rows(
    axis: Axes, panel: _Panel, results: Sequence[Result], cases: Sequence[str], labels: Sequence[str]
) -> None:
    height = _WIDTH / len(cases)
    highest = 0.0
    for result in results:
        value = panel.value(result.summary)
        if value is None:
            continue
        number = cases.index(result.case)
        y = labels.index(result.label) + (number - (len(cases) - 1) / 2) * height
        axis.barh(y, value, height * 0.9, color=plot.colour(number), label=result.case)
        text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        axis.annotate(text, (value, y), (2, 0), textcoords="offset points", va="center", fontsize=7)
        highest = max(highest, value)
    axis.set_title(panel.title)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    if panel.ratio:
        plot.logarithmic(axis, "x")
        axis.set_xlim(1, max(highest * highest**0.2, 2))
    else:
        axis.set_xlim(0, max(highest * 1.2, 1))
    axis.grid(visible=False, axis="y")
