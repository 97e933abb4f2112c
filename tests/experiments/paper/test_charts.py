# SPDX-License-Identifier: Apache-2.0
"""Figures that can be read: nothing lies on top of something else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments.paper.charts import document_figure
from experiments.paper.document import Cell, Document

_SCHEMES = ("minimal", "valiant", "ugal-l", "ecmp", "flicr", "ops-u", "ops-w", "scout", "spray-u", "spray-w")
_CASES = tuple(
    f"{load} {network}"
    for load in ("permutation", "adversarial", "butterfly", "ring", "all-to-all", "web search")
    for network in ("dragonfly", "slim-fly")
)


def bars(cases: tuple[str, ...], schemes: tuple[str, ...]) -> Document:
    """A figure of bars, all at 123456 µs."""
    return Document(
        name="some",
        paper="Some",
        figure="Fig. 1",
        title="",
        source="",
        about="",
        kind="runs",
        chart="bars",
        scale="paper",
        command="",
        version=None,
        cases=dict.fromkeys(cases, ""),
        metrics=("fct_mean", "fct_p99"),
        cells=tuple(
            Cell(case, scheme, {"fct_mean": 123456e3, "fct_p99": 1e6}) for case in cases for scheme in schemes
        ),
        claims=(),
    )


@pytest.mark.parametrize("cases", [2, 4, 8, 12])
@pytest.mark.parametrize("schemes", [3, 6, 10])
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
