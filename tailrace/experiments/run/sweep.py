# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one experiment at every combination of some keys' values.

seed=1..5                                  whole numbers from 1 to 5
scheme=ecmp,flowcut:variant=nic,rtt=3      words; a piece key=value belongs to the words before it
scheme.rtt=2,3,4                           an option of the words, which keep the others
fault=none,link-slow:fraction=0.01,factor=0.1
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from rich.table import Table

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.experiment import KEYS, Experiment, Settings, of_settings
from tailrace.experiments.plan.words import slug, split_words
from tailrace.experiments.results.result import Result
from tailrace.experiments.results.summary import Summary
from tailrace.experiments.results.table import (
    COLUMNS,
    DOUBTFUL,
    figures,
    metric_cells,
    metric_titles,
    own_metrics,
)
from tailrace.experiments.run.task import Failed, Task, make_task
from tailrace.words import SpecError, parse
from tailrace.words.limits import refuse_above
from tailrace.words.schema import KeyProblemError, convert, given

SWEEP = "sweep.json"

_WITH_OPTIONS = ("scheme", "topology", "workload")
_RANGE = re.compile(r"([0-9]{1,19})\.\.([0-9]{1,19})")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, or an option of a key's words (`scheme.rtt`), and the values that it takes."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination: the value of each axis, and the task."""

    settings: dict[str, str]
    task: Task


class PointResult(msgspec.Struct, frozen=True):
    """A point within sweep.json: its summary, or why there is none."""

    settings: dict[str, str]
    folder: str
    summary: Summary | UnsetType = UNSET
    failed: str | UnsetType = UNSET


class SweepDocument(msgspec.Struct, frozen=True):
    """sweep.json: what was varied, and a point for every combination, the last axis fastest."""

    axes: dict[str, tuple[str, ...]]
    points: tuple[PointResult, ...]


def parse_axis(text: str) -> Axis:
    """The axis that KEY=VALUE,VALUE describes.

    Raises:
        SpecError: no such key, or no values.
    """
    key, equals, rest = text.partition("=")
    name, dot, option = key.partition(".")
    if not equals or not rest:
        raise SpecError(f"--set {text!r}: expected KEY=VALUE,VALUE")
    if name not in KEYS or (dot and (name not in _WITH_OPTIONS or not option)):
        known = ", ".join((*KEYS, *(f"{each}.OPTION" for each in _WITH_OPTIONS)))
        raise SpecError(f"--set {key}: unknown key; expected {known}")
    return Axis(key, tuple(itertools.chain.from_iterable(map(_range, split_words(rest, f"--set {key}")))))


def _range(text: str) -> Sequence[str]:
    """The numbers of FIRST..LAST; any other text is one value."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return (text,)
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MOST:
        raise SpecError(f"--set: {text}: expected FIRST..LAST, at most {_MOST} numbers")
    return [str(number) for number in range(first, last + 1)]


def points(base: Experiment, axes: Sequence[Axis], target: str) -> list[Point]:
    """Every combination of the axes' values, the last axis fastest.

    Args:
        base: what no axis changes.
        axes: at least one, of different keys.
        target: bmv2, native or virtual.

    Raises:
        SpecError: a key twice, or a value that a key does not take.
    """
    names = [axis.key for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--set {name}: given twice")
    refuse_above("sweep", "runs", math.prod(len(axis.values) for axis in axes), _MOST)
    found = []
    for values in itertools.product(*(axis.values for axis in axes)):
        settings = dict(zip(names, values, strict=True))
        experiment = _at(base, settings)
        label = ",".join(f"{key}={value}" for key, value in settings.items())
        folder = Path(*(slug(f"{key}={value}") for key, value in settings.items()))
        found.append(Point(settings, make_task(experiment, target, label=label, out=folder)))
    return found


def _at(base: Experiment, settings: dict[str, str]) -> Experiment:
    """The experiment at one combination."""
    whole: dict[str, Any] = {key: value for key, value in settings.items() if "." not in key}
    if "fault" in whole:
        whole["fault"] = [whole["fault"]]
    if "watch" in whole:
        whole["watch"] = [whole["watch"]]
    changes = given(convert(whole, Settings, strict=False))
    options = {}
    for key, value in settings.items():
        name, dot, option = key.partition(".")
        if dot:
            options[name] = f"{key}={value}"
            changes[name] = parse(changes.get(name) or _words(base, name), name).setting(option, value)
    try:
        return of_settings(changes, base)
    except KeyProblemError as error:
        if error.key in options:
            raise SpecError(f"--set {options[error.key]}: {error.problem}") from error
        raise


def _words(base: Experiment, name: str) -> str:
    """What a point changes an option of, where it does not change the words themselves."""
    if name == "workload":
        return base.workload or defaults.workload(base.target)
    return base.scheme if name == "scheme" else base.topology


def document(axes: Sequence[Axis], found: Sequence[tuple[Point, Result | Failed]]) -> SweepDocument:
    """What sweep.json holds."""
    entries = []
    for point, end in found:
        folder = str(point.task.out)
        if isinstance(end, Result):
            entries.append(PointResult(point.settings, folder, summary=end.summary))
        else:
            entries.append(PointResult(point.settings, folder, failed=end.reason))
    return SweepDocument({axis.key: axis.values for axis in axes}, tuple(entries))


def make_sweep_table(found: Sequence[tuple[Point, Result]]) -> Table:
    """A row a point of a sweep: the values of its axes, and what was measured."""
    table = Table(header_style="bold", caption_style="")
    for key in found[0][0].settings:
        table.add_column(key)
    own = own_metrics([result for _, result in found])
    for name in (*COLUMNS[:-1], *metric_titles(own)):
        table.add_column(name, justify="right", no_wrap=True)
    for point, result in found:
        values = list(point.settings.values())
        if not result.complete or result.summary.overloaded:
            values[-1] += " (!)"
            table.caption = DOUBTFUL
        table.add_row(*values, *figures(result.summary), *metric_cells(result.summary, own))
    return table
