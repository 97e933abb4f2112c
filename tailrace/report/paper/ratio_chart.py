# SPDX-License-Identifier: Apache-2.0
"""The chart of ratios to a base scheme: a panel per metric, a row per scheme, a point per case."""

from __future__ import annotations

from matplotlib.figure import Figure

from tailrace.papers.document import Document
from tailrace.report.figures import plot
from tailrace.report.figures.ratios import panel_height, ratio_panel
from tailrace.report.paper.table import ratio_names, ratio_title
from tailrace.results.metrics import metric


def ratios_chart(document: Document) -> Figure:
    """The chart. The axis is logarithmic, so a ratio of 0 is shown only in the table."""
    labels = list(
        dict.fromkeys(cell.label for cell in document.cells if cell.ratios and cell.label != document.base)
    )
    cases = {case: document.cases[case] or case for case in document.cases} or {"": ""}
    names = ratio_names(document)
    height = panel_height(len(labels), len(cases))
    figure, axes = plot.panels(len(names), width=4.2, height=height, columns=3)
    for axis, name in zip(axes, names, strict=True):
        points = [(cell.label, cell.case, cell.ratios.get(name, (0.0,))) for cell in document.cells]
        ratio_panel(axis, points, labels, cases)
        axis.set_xlabel(ratio_title(document, name))
        axis.set_title(metric(name).title)
    plot.legend(figure, *axes)
    return figure
