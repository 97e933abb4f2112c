# SPDX-License-Identifier: Apache-2.0
"""What came of a figure or table: one JSON file, from which tables, figures and the report are made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.experiments.paper.claims.claims import Verdict
from tailrace.experiments.paper.claims.kinds import KINDS
from tailrace.experiments.paper.measure.metrics import metric
from tailrace.experiments.results.result import read_struct
from tailrace.words.suggest import expected

RESULT = "result.json"
_LINE = 100
_HEATMAP_AXES = 2

OWN_BASE = "its base"
"""What ratios are to where schemes are over several others."""


class Cell(msgspec.Struct, frozen=True):
    """One scheme in one case: metrics by name; times in ns, sizes in bytes, shares from 0 to 1.

    value: what a search has chosen, with its option's name; note: what a reader must know about the cell
    runs: the folders of its runs, one a seed
    intervals: the ends of the 95 % interval over seeds of the metrics that are shown
    ratios: of drawn metrics to those of the base, of the same seeds, and the interval's ends if there are any
    """

    case: str
    label: str
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

    panel: str
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


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
    cases: dict[str, str] = {}
    axes: dict[str, tuple[str, ...]] = {}
    axis_titles: dict[str, str] = {}
    drawn: tuple[str, ...] = ()
    base: str = ""
    metrics: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    reductions: tuple[str, ...] = ()
    cells: tuple[Cell, ...]
    curves: tuple[Curve, ...] = ()
    claims: tuple[Verdict, ...]
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost | None = None
    kept: str = ""
    rounded: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError where parts name what there is not."""
        for name in (*self.metrics, *self.drawn):
            metric(name)
        if self.chart == "heatmap" and len(self.axes) != _HEATMAP_AXES:
            raise ValueError(f"axes: expected {_HEATMAP_AXES} of a heat map, found {len(self.axes)}")
        for claim in self.claims:
            if claim.kind not in KINDS:
                raise ValueError(f"claims: kind {claim.kind!r}: {expected(claim.kind, KINDS)}")


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
