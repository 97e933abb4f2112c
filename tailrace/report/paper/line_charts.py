# SPDX-License-Identifier: Apache-2.0
"""Line charts of a document's curves: slowdown by flow size and by start time, and gaps between packets."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from tailrace.hosts.measured import RTTS
from tailrace.papers.document import Curve, Document
from tailrace.papers.measure.gap_curves import SPREAD
from tailrace.report.figures import plot
from tailrace.results.units import UNITS
from tailrace.spec.units import format_bytes

_STEPS = (1, 1.5, 2, 3, 4, 6, 8)
"""Ticks of the slowdown axis within a decade; there are many, since slowdowns rarely span several decades."""


def sizes_chart(document: Document) -> Figure:
    """Slowdown against the size of flows."""
    panels = _panels(document)
    figure, axes = plot.panels(len(panels), width=4.6, height=3.2, columns=2)
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, curve in curves:
            axis.plot(curve.x, curve.y, **_style(number), marker="o", markersize=3, label=curve.label)
        axis.set_title(title)
        plot.logarithmic(axis, "x", lambda size: format_bytes(round(size)), base=2)
        axis.set_xlabel("flow size up to")
        plot.logarithmic(axis, "y")
        axis.yaxis.set_major_locator(LogLocator(subs=_STEPS))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_ylabel("slowdown (×)")
    plot.legend(figure, *axes)
    return figure


def gaps_chart(document: Document) -> Figure:
    """Shares of gaps against their length, with vertical lines at one, two and three base RTTs."""
    panels = _panels(document)
    factor = UNITS["us"].factor
    rtts = {cell.metrics["rtt"] * factor for cell in document.cells if "rtt" in cell.metrics}
    figure, axes = plot.panels(len(panels), width=4.6, height=3.2, columns=2)
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, curve in curves:
            x = [gap_ns * factor for gap_ns in curve.x]
            drawstyle = "steps-post" if title.endswith(SPREAD) else "default"
            axis.plot(x, curve.y, **_style(number), drawstyle=drawstyle, label=curve.label)
        for number in RTTS if len(rtts) == 1 else ():
            axis.axvline(number * min(rtts), color=plot.colour(-1), linestyle=plot.line(number))
        axis.set_title(title)
        plot.logarithmic(axis, "x")
        plot.logarithmic(axis, "y", lambda share: f"{share * UNITS['%'].factor:g}")
        axis.set_ylabel("share (%)")
        axis.set_xlabel("gap (µs); vertical: 1, 2 and 3 base RTTs" if rtts else "gap (µs)")
    plot.legend(figure, *axes)
    return figure


def warm_up_chart(document: Document) -> Figure:
    """Mean slowdown against the start time of flows."""
    panels = _panels(document)
    figure, axes = plot.panels(len(panels), width=4.6, height=3.2, columns=2)
    factor = UNITS["ms"].factor
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, curve in curves:
            axis.plot(
                [start_ns * factor for start_ns in curve.x], curve.y, **_style(number), label=curve.label
            )
        axis.set_title(document.cases.get(title, title))
        axis.set_xlabel("start of the flow (ms)")
        axis.set_ylabel("mean slowdown (×)")
        axis.set_ylim(bottom=0)
    plot.legend(figure, *axes)
    return figure


def _style(number: int) -> dict[str, Any]:
    return {"color": plot.colour(number), "linestyle": plot.line(number), "linewidth": 1.5}


def _panels(document: Document) -> dict[str, list[tuple[int, Curve]]]:
    """The curves of each panel, each with the index of its scheme."""
    labels = list(dict.fromkeys(cell.label for cell in document.cells))
    curves: dict[str, list[tuple[int, Curve]]] = {}
    for curve in document.curves:
        curves.setdefault(curve.panel, []).append((labels.index(curve.label), curve))
    return curves
