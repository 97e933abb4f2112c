# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: distributions of completion times, and shares of packets out of order.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; line styles and hatches
differ too, so that the figure survives grey printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from experiments.metrics import cumulative
from experiments.result import Result

STEM = "comparison"
FORMATS = ("svg", "png")

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
_LINES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx")
_PANEL_INCHES = (4.2, 3.6)
_DOTS_PER_INCH = 150
_MS_NS = 1e6
_STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.3,
    "hatch.linewidth": 0.6,
    # the same results give the same file
    "svg.hashsalt": "tailrace",
    "svg.fonttype": "path",
}


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draw the figure into the folder, once a format; returns the files."""
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    with mpl.rc_context(_STYLE):
        width, height = _PANEL_INCHES
        figure = Figure(figsize=(width * (len(cases) + 1), height), layout="constrained")
        axes = figure.subplots(1, len(cases) + 1, squeeze=False)[0]
        for axis, case in zip(axes, cases, strict=False):
            _completion(axis, case, [result for result in results if result.case == case], labels)
        _out_of_order(axes[-1], results, cases, labels)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(labels), frameon=False)
        return [_save(figure, folder / f"{STEM}.{kind}") for kind in FORMATS]


def _save(figure: Figure, path: Path) -> Path:
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=metadata)
    return path


def _completion(axis: Axes, case: str, results: Sequence[Result], labels: Sequence[str]) -> None:
    """One line a scheme: the share of all flows that had finished after some time."""
    for result in results:
        number = labels.index(result.label)
        times_ms = [row.fct_ns / _MS_NS for row in result.rows if row.fct_ns is not None]
        x, y = cumulative(times_ms, len(result.rows))
        axis.step(
            [x[0], *x] if x else [],
            [0.0, *y] if y else [],
            where="post",
            label=result.label,
            color=_COLOURS[number % len(_COLOURS)],
            linestyle=_LINES[number % len(_LINES)],
            linewidth=1.8,
        )
    axis.set_title(f"Flow completion, {case}")
    axis.set_xlabel("flow completion time (ms)")
    axis.set_ylabel("share of flows")
    axis.set_ylim(0, 1.02)
    axis.set_xlim(left=0)


def _out_of_order(axis: Axes, results: Sequence[Result], cases: Sequence[str], labels: Sequence[str]) -> None:
    """One bar a case and scheme, with its value above it; no bar where nothing was observed."""
    width = 0.8 / max(1, len(labels))
    highest = 0.0
    for result in results:
        share = result.summary.packets.out_of_order_fraction
        if isinstance(share, UnsetType):
            continue
        number = labels.index(result.label)
        x = cases.index(result.case) + (number - (len(labels) - 1) / 2) * width
        colour = _COLOURS[number % len(_COLOURS)]
        hatch = _HATCHES[number % len(_HATCHES)]
        axis.bar(x, 100 * share, width * 0.9, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        axis.annotate(
            f"{100 * share:.2g}",
            (x, 100 * share),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
        highest = max(highest, 100 * share)
    axis.set_title("Out-of-order packets")
    axis.set_ylabel("share of received data packets (%)")
    axis.set_xticks(range(len(cases)), cases)
    axis.set_ylim(0, max(highest * 1.15, 1))
    axis.grid(visible=False, axis="x")
