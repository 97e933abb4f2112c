# SPDX-License-Identifier: Apache-2.0
"""Figures that can be read: nothing lies on top of something else."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tailrace.papers.document import Cell, Document
from tailrace.report.paper.charts import document_figure
from tests.long import more
from tests.papers.blank import blank

_SCHEMES = ("minimal", "valiant", "ugal-l", "ecmp", "flicr", "ops-u", "ops-w", "scout", "spray-u", "spray-w")
_CASES = tuple(
    f"{load} {network}"
    for load in ("permutation", "adversarial", "butterfly", "ring", "all-to-all", "web search")
    for network in ("dragonfly", "slim-fly")
)


def bars(cases: tuple[str, ...], schemes: tuple[str, ...]) -> Document:
    """A figure of bars, all at 123456 µs."""
    return blank(
        cases=dict.fromkeys(cases, ""),
        metrics=("fct_mean", "fct_p99"),
        cells=tuple(
            Cell(case, scheme, {"fct_mean": 123456e3, "fct_p99": 1e6}) for case in cases for scheme in schemes
        ),
    )


@pytest.mark.parametrize("cases", [2, 12, *more(4, 8)])
@pytest.mark.parametrize("schemes", [3, 10, *more(6)])
def test_names_of_cases_keep_apart(cases: int, schemes: int) -> None:
    """However many there are."""
    figure = document_figure(bars(_CASES[:cases], _SCHEMES[:schemes]))
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axis in figure.axes:
        boxes = [label.get_window_extent(canvas.get_renderer()) for label in axis.get_xticklabels()]
        assert len(boxes) == cases
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_heat_maps_of_several_metrics() -> None:
    """A panel a case and metric, each with the options' titles and what stands beside the grid."""
    grid = [(f"gap={gap},cell={cell}", gap * cell) for gap in (1, 2) for cell in (3, 4, 5)]
    cells = [("alone", 7), *grid]
    document = msgspec.structs.replace(
        bars(("left", "right"), ("alone",)),
        chart="heatmap",
        axes={"gap": ("1", "2"), "cell": ("3", "4", "5")},
        axis_titles={"gap": "the gap"},
        drawn=("fct_mean", "fct_p99"),
        cells=tuple(
            Cell(case, label, {"fct_mean": value * 1e3, "fct_p99": value * 2e3})
            for case in ("left", "right")
            for label, value in cells
        ),
    )
    figure = document_figure(document)
    assert figure is not None
    assert len(figure.axes) == 4
    for number, axis in enumerate(figure.axes):
        factor = 1 + number % 2
        assert axis.get_title().splitlines()[:2] == [
            ("left", "right")[number // 2],
            f"alone: {7 * factor} µs",
        ]
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("the gap", "cell")
        shown = [text.get_text() for text in axis.texts]
        assert shown == [str(gap * cell * factor) for cell in (3, 4, 5) for gap in (1, 2)]


def test_bars_of_some_metrics() -> None:
    """A panel for each that is to be drawn."""
    document = bars(_CASES[:2], _SCHEMES[:3])
    for drawn, titles in (((), ["mean FCT", "p99 FCT"]), (("fct_p99",), ["p99 FCT"])):
        figure = document_figure(msgspec.structs.replace(document, drawn=drawn))
        assert figure is not None
        assert [axis.get_title() for axis in figure.axes] == titles
