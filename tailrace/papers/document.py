# SPDX-License-Identifier: Apache-2.0
"""What came of a figure or table: one JSON file, from which tables, figures and the report are made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.papers.claims.claims import Verdict
from tailrace.papers.claims.kinds import KINDS
from tailrace.results.metrics import metric
from tailrace.results.result import read_struct
from tailrace.spec.suggest import expected

RESULT = "result.json"
_LINE = 100
_HEATMAP_AXES = 2

MOST_PANELS, MOST_MARKS = 50, 2000
"""Of a figure; marks are its bars, points or squares, in all panels. The most of ours are 15 and 441."""

OWN_BASE = "its base"
"""What ratios are to where schemes are over several others."""

_Name = Annotated[str, Meta(max_length=200)]
"""What stands in a figure."""

_Metrics = Annotated[tuple[str, ...], Meta(max_length=MOST_PANELS)]
_Numbers = Annotated[tuple[float, ...], Meta(max_length=1000)]


class Cell(msgspec.Struct, frozen=True):
    """One scheme in one case: metrics by name; times in ns, sizes in bytes, shares from 0 to 1.

    value: what a search has chosen, with its option's name; note: what a reader must know about the cell
    runs: the folders of its runs, one a seed
    intervals: the ends of the 95 % interval over seeds of the metrics that are shown
    ratios: of drawn metrics to those of the base, of the same seeds, and the interval's ends if there are any
    """

    case: _Name
    label: _Name
    metrics: dict[str, float]
    value: str = ""
    note: str = ""
    runs: tuple[str, ...] = ()
    intervals: dict[str, tuple[float, float]] = {}
    ratios: dict[str, Annotated[tuple[float, ...], Meta(min_length=1, max_length=3)]] = {}


class Curve(msgspec.Struct, frozen=True):
    """A line of a panel: of a search, mean FCT in ns against the searched value; of the memory model, bytes
    against flows a host.
    """

    panel: _Name
    label: _Name
    x: _Numbers
    y: _Numbers


class Cost(msgspec.Struct, frozen=True):
    """What the runs of a figure took: of a processor, in s; and the most memory of one of them."""

    runs: int
    cpu_s: float
    memory_bytes: int
    machines: tuple[str, ...] = ()


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """result.json of a figure or table. `command` makes it again.

    axes: options and values of a grid, `axis_titles` what they are called
    drawn: metrics that its figure shows; empty: all, or the first one in a heat map
    base: the scheme to which ratios are, or OWN_BASE; empty: there are none
    notes: what a reader must know of all numbers: of which flows a tail is, why there are no intervals
    cost: of its runs; none: it has none, or nobody knows
    kept: what must be known of runs that earlier code made; empty: there are none
    rounded: numbers have been read off a page, lines off its picture, and have their digits: three or six
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
        """Raises ValueError where parts name what there is not, or would take long to draw."""
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
        """The panels of its figure, and the marks in all of them."""
        cases = max(1, len(self.cases))
        if self.chart == "heatmap":
            panels = cases * len(self.drawn or self.metrics[:1])
            return panels, panels * math.prod(map(len, self.axes.values()))
        names = len(self.drawn or self.metrics)
        lines = cases if self.chart == "memory" else len({curve.panel for curve in self.curves})
        return max(names, lines), names * cases * len({cell.label for cell in self.cells})


def as_lines(document: Document) -> str:
    """The document as JSON with a line a key, and a line an element where a list is long."""
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
        FileError: it cannot be read, or is none.
    """
    return read_struct(path, Document, "no result of a paper's figure")
