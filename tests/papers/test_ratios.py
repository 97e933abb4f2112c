# SPDX-License-Identifier: Apache-2.0
"""Ratios to a base, in pairs of one seed; and the common comparison, which is made of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from msgspec.structs import asdict

from tailrace.papers.document import OWN_BASE, Cell, Document
from tailrace.papers.model import Rows, read_paper_file
from tailrace.report.paper.charts import document_figure
from tailrace.report.paper.table import measured_table, ratio_text
from tailrace.spec.errors import FileError
from tailrace.tables.cell_text import texts_of
from tests.papers.blank import blank
from tests.papers.small import check_everything_ran, run_small
from tests.papers.test_files import GOOD


def drawn(ratios: dict[str, tuple[float, ...]], cases: tuple[str, ...] = ("low", "high")) -> Document:
    """Two metrics over a base, of so many schemes, the same in every case."""
    metrics = {"slowdown_mean": 2.0, "slowdown_p99": 20.0}
    return blank(
        name="common_some",
        chart="ratios",
        base="ecmp",
        cases=dict.fromkeys(cases, ""),
        metrics=tuple(metrics),
        cells=tuple(
            Cell(case, label, metrics, ratios=dict.fromkeys(metrics, ratio))
            for case in cases
            for label, ratio in {"ecmp": (1.0, 1.0, 1.0), **ratios}.items()
        ),
    )


def test_the_base_is_the_line_and_others_are_rows() -> None:
    """A panel a metric; a point a case, with its interval; nothing lies on another name."""
    figure = document_figure(drawn({"flowcut": (0.8, 0.7, 0.9), "spray": (9.0, 7.0, 12.0), "drill": (1.2,)}))
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert len(figure.axes) == 2
    rows = [[label.get_text() for label in axis.get_yticklabels()] for axis in figure.axes]
    assert [any(names) for names in rows] == [True, False]
    assert rows[0] == ["flowcut", "spray", "drill"]
    for axis in figure.axes:
        low, high = axis.get_xlim()
        assert low < 0.7 < 12 < high
        boxes = [label.get_window_extent(canvas.get_renderer()) for label in axis.get_xticklabels()]
        assert len(boxes) > 2
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
        points = [line for line in axis.lines if line.get_linestyle() == "None"]
        assert sorted(np.concatenate([line.get_xdata() for line in points])) == [0.8, 0.8, 1.2, 1.2, 9.0, 9.0]


def test_rows_are_sorted_coloured_by_transport_and_marked() -> None:
    """By what the runs measured; a row has one place, whatever its transport."""
    document = drawn({"spray": (9.0, 7.0, 12.0), "flowcut": (0.8, 0.7, 0.9), "ops": (0.5,)}, ("",))
    shares = {
        "ecmp": ("dcqcn", 0.0),
        "spray": ("dcqcn", 0.2),
        "flowcut": ("dcqcn", 0.0),
        "ops": ("dctcp", 0.1),
    }
    cells = tuple(
        msgspec.structs.replace(
            cell,
            metrics={**cell.metrics, "out_of_order_share": shares[cell.label][1]},
            transport=shares[cell.label][0],
        )
        for cell in document.cells
    )
    rows = Rows(sort=True, colour="transport", mark="out_of_order_share")
    figure = document_figure(msgspec.structs.replace(document, cells=cells, rows=rows))
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["ops", "flowcut ✓", "spray"]
    for axis in figure.axes:
        points = [line for line in axis.lines if line.get_linestyle() == "None"]
        colours = {float(y): line.get_color() for line in points for y in np.ravel(line.get_ydata())}
        assert sorted(colours) == [0, 1, 2]
        assert colours[0] != colours[1] == colours[2]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["transport dctcp", "transport dcqcn", "✓ packets out of order: 0"]


@pytest.mark.parametrize("spread", [1.01, 1.3, 2.0, 10.0, 80.0])
def test_an_axis_has_numbers_whatever_the_ratios_are(spread: float) -> None:
    figure = document_figure(drawn({"it": (spread,)}))
    assert figure is not None
    assert all(len(axis.get_xticks()) >= 1 for axis in figure.axes)


def test_nothing_over_something_has_no_point() -> None:
    """Others are drawn as if it were not there."""
    figure = document_figure(drawn({"none": (0.0, 0.0, 0.0), "half": (0.5, 0.0, 1.0), "it": (0.8, 0.7, 0.9)}))
    assert figure is not None
    for axis in figure.axes:
        points = [line for line in axis.lines if line.get_linestyle() == "None"]
        assert sorted(np.concatenate([line.get_xdata() for line in points])) == [0.8, 0.8]
        assert axis.get_xlim()[0] > 0.6


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ((0.834, 0.81, 0.86), "0.83 (0.81..0.86)"),
        ((0.834,), "0.83"),
        ((1.0, 1.0, 1.0), "1.00"),
        ((0.9, 0.8, 0.998), "0.90 (0.80..0.998)"),
    ],
)
def test_a_ratio_in_a_table(ratio: tuple[float, ...], text: str) -> None:
    assert ratio_text(Cell("", "it", {}, ratios={"fct_mean": ratio}), "fct_mean") == text
    assert ratio_text(Cell("", "it", {}), "fct_mean") == "-"


def test_the_table_has_the_ratios_first() -> None:
    """Then the metrics, in the order of the figure."""
    table = measured_table(drawn({"flowcut": (0.8, 0.7, 0.9)}))
    texts = texts_of(table)
    assert [each.title for each in texts][2:5] == [
        "mean slowdown / ecmp",
        "p99 slowdown / ecmp",
        "mean slowdown (×)",
    ]
    row = [each.cells[1] for each in texts]
    assert row[1:] == ["flowcut", "0.80 (0.70..0.90)", "0.80 (0.70..0.90)", "2", "20"]


@pytest.mark.parametrize(
    ("change", "where", "problem"),
    [
        ('base = "none"', "base", "expected one of 'flowlet', found 'none'"),
        ('rows = { colour = "queue" }', "rows.colour", "expected one of '', 'transport', found 'queue'"),
        ('rows = { mark = "pauses" }', "rows.mark", "expected one of '', 'fct_mean'"),
        ('chart = "ratios"', "base", "missing; expected the scheme to which ratios are relative"),
    ],
)
def test_mistakes_are_told(change: str, where: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "it.toml"
    path.write_text(f"{change}\n{GOOD}")
    with pytest.raises(FileError, match=f"key '{where}': {problem}"):
        read_paper_file(path)


def test_schemes_over_others(tmp_path: Path) -> None:
    """Each over its own; what is over nothing has no row."""
    path = tmp_path / "it.toml"
    scheme = '[[scheme]]\nlabel = "{}"\nexperiment = {{ scheme = "ecmp" }}\n'
    pair = f'{scheme.format("one")}{scheme.format("on one")}over = "one"\n'
    path.write_text(GOOD.replace("[[scheme]]", f"{pair}[[scheme]]").replace("tune =", "#"))
    assert read_paper_file(path).bases == {"on one": "one"}
    document = drawn({"flowcut": (0.8,)}, ("it",))
    without = tuple(Cell("it", label, {}) for label in ("ecmp", "spray"))
    figure = document_figure(
        blank(**{**asdict(document), "base": OWN_BASE, "cells": (*document.cells, *without)})
    )
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["ecmp", "flowcut"]
    path.write_text(path.read_text().replace('over = "one"', 'over = "two"'))
    with pytest.raises(FileError, match=r"key 'scheme\[1\].over': expected one of '', 'one', 'on one'"):
        read_paper_file(path)


def test_everything_ran(tmp_path: Path) -> None:
    """At the small scale."""
    documents = run_small("common", tmp_path)
    check_everything_ran(documents)
    for document in documents.values():
        for cell in document.cells:
            assert document.base == "" or set(cell.ratios) == set(document.drawn), document.name
            if cell.label == document.base:
                assert {ratio[0] for ratio in cell.ratios.values()} == {1.0}


def test_a_figure_without_any_ratio_is_not_drawn() -> None:
    """As when no pair of runs has finished."""
    document = drawn({})
    cells = tuple(msgspec.structs.replace(cell, ratios={}) for cell in document.cells)
    assert document_figure(msgspec.structs.replace(document, cells=cells)) is None
