# SPDX-License-Identifier: Apache-2.0
"""The results of a figure or table: a JSON file from which tables, figures and the report are made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.papers.claims.claims import Verdict
from tailrace.papers.claims.kinds import KINDS
from tailrace.papers.model import Rows
from tailrace.results.metrics import metric
from tailrace.results.result import read_struct
from tailrace.spec.suggest import expected

RESULT = "result.json"
_LINE = 100
_HEATMAP_AXES = 2

MOST_PANELS, MOST_MARKS = 50, 2000
"""Limits of a figure; marks are its bars, points or squares in all panels. This project's largest figures
have 15 panels and 441 marks.
"""

OWN_BASE = "its base"
"""Shown as the base of ratios if schemes have different bases."""

_Name = Annotated[str, Meta(max_length=200)]
"""A name that appears in a figure."""

_Metrics = Annotated[tuple[str, ...], Meta(max_length=MOST_PANELS)]
_Estimate = Annotated[tuple[float, ...], Meta(min_length=1, max_length=3)]
"""A value, and the ends of its interval if there is one."""

_Numbers = Annotated[tuple[float, ...], Meta(max_length=1000)]


class Cell(msgspec.Struct, frozen=True):
    """One scheme in one case (a setting in which schemes are compared): metrics by name; times in ns, sizes
    in bytes, shares from 0 to 1.

    value: the option and the value that a search (model.Tune) chose; empty: no search
    note: a remark on the cell for the reader
    runs: the folders of the cell's runs, one per seed
    intervals: the ends of the 95 % interval over seeds, for each metric that is shown
    ratios: for each drawn metric, the ratio to the base scheme's metric, paired by seed; then, if the ratio
        has an interval, the ends of the interval
    transport: that of the cell's runs
    theirs: by metric, the peer's mean over its seeds; then, if there is one, the ends of its interval
    """

    case: _Name
    label: _Name
    metrics: dict[str, float]
    value: str = ""
    note: str = ""
    runs: tuple[str, ...] = ()
    intervals: dict[str, tuple[float, float]] = {}
    ratios: dict[str, _Estimate] = {}
    transport: _Name = ""
    theirs: dict[str, _Estimate] = {}


class Curve(msgspec.Struct, frozen=True):
    """A line of a panel: for a search, mean FCT in ns against the searched value; for the memory model, bytes
    against flows per host.
    """

    panel: _Name
    label: _Name
    x: _Numbers
    y: _Numbers


class Cost(msgspec.Struct, frozen=True):
    """The cost of a figure's runs: their total CPU time in s, and the largest memory peak of any run."""

    runs: int
    cpu_s: float
    memory_bytes: int
    machines: tuple[str, ...] = ()


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """result.json of a figure or table; `command` is the command line that produces it.

    axes, axis_titles: the options of a grid with their values, and the titles of the options
    drawn: metrics that the figure shows; empty: all metrics, or in a heat map the first metric
    base: the scheme to which ratios are relative, or OWN_BASE; empty without ratios
    notes: remarks on all numbers: which tail is shown, why there are no intervals
    cost: the cost of the runs; None: there are no runs, or their cost is unknown
    kept: a remark on stored runs that were made by earlier code; empty: there are no such runs
    rounded: whether numbers were recovered from a page, with three digits, and curves from the page's
        picture, with six digits
    """

    name: str
    paper: str
    figure: str
    title: str
    source: str
    about: str
    kind: str
    chart: str
    scale: str
    command: str
    version: str | None
    seeds: tuple[int, ...] = ()
    setting: dict[str, str] = {}
    cases: dict[_Name, _Name] = {}
    axes: dict[_Name, tuple[_Name, ...]] = {}
    axis_titles: dict[_Name, _Name] = {}
    drawn: _Metrics = ()
    base: str = ""
    rows: Rows = Rows()
    metrics: _Metrics
    assumptions: tuple[str, ...] = ()
    reductions: tuple[str, ...] = ()
    cells: Annotated[tuple[Cell, ...], Meta(max_length=MOST_MARKS)]
    curves: Annotated[tuple[Curve, ...], Meta(max_length=300)] = ()
    claims: tuple[Verdict, ...]
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost | None = None
    kept: str = ""
    rounded: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError if a field names an unknown metric or kind, or the figure would be too large."""
        for name in (*self.metrics, *self.drawn):
            metric(name)
        if self.chart == "heatmap" and len(self.axes) != _HEATMAP_AXES:
            raise ValueError(f"axes: expected {_HEATMAP_AXES} of a heat map, found {len(self.axes)}")
        for claim in self.claims:
            if claim.kind not in KINDS:
                raise ValueError(f"claims: kind {claim.kind!r}: {expected(claim.kind, KINDS)}")
        panels, marks = self._size()
        if panels > MOST_PANELS:
            raise ValueError(
                f"cases, drawn and curves: expected at most {MOST_PANELS} panels, found {panels}"
            )
        if marks > MOST_MARKS:
            raise ValueError(
                f"cases, drawn, axes and cells: expected at most {MOST_MARKS} marks, found {marks}"
            )

    def _size(self) -> tuple[int, int]:
        """The number of panels of the figure, and of marks in all panels."""
        cases = max(1, len(self.cases))
        if self.chart == "heatmap":
            panels = cases * len(self.drawn or self.metrics[:1])
            return panels, panels * math.prod(map(len, self.axes.values()))
        names = len(self.drawn or self.metrics)
        lines = cases if self.chart == "memory" else len({curve.panel for curve in self.curves})
        return max(names, lines), names * cases * len({cell.label for cell in self.cells})


def as_lines(document: Document) -> str:
    """The document as JSON with one line per key, and in long lists one line per element."""
    lines = []
    for key, value in msgspec.to_builtins(document).items():
        text = msgspec.json.encode(value).decode()
        if isinstance(value, list | tuple) and len(text) > _LINE:
            elements = ",\n  ".join(msgspec.json.encode(element).decode() for element in value)
            text = f"[\n  {elements}\n ]"
        lines.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_document(path: Path) -> Document:
    """The document in a file.

    Raises:
        FileError: the file cannot be read, or is not a document.
    """
    return read_struct(path, Document, "no result of a paper's figure")
