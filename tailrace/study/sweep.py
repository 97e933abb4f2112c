# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one experiment at every combination of some keys' values.

seed=1..5                                  whole numbers from 1 to 5
scheme=ecmp,flowcut:variant=nic,rtt=3      words; a piece key=value belongs to the words before it
scheme.rtt=2,3,4                           an option of the words, which keep the others
fault=none,link-slow:fraction=0.01,factor=0.1
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.experiment import KEYS, Experiment, Settings, of_settings
from tailrace.experiments.plan.seeds import number_range
from tailrace.experiments.plan.spec_list import case_name, slug, split_specs
from tailrace.p4rt.errors import ControllerError
from tailrace.results.comparison import all_flows, within
from tailrace.results.estimates import Group
from tailrace.results.result import Result, read_result, read_struct
from tailrace.results.summary import Summary
from tailrace.results.table import make_table, markdown
from tailrace.spec import Error, SpecError, parse
from tailrace.spec.limits import refuse_above
from tailrace.spec.schema import KeyProblemError, convert, given
from tailrace.spec.suggest import expected
from tailrace.study.task import Task, make_task

if TYPE_CHECKING:
    from arro3.core import Table

    from tailrace.tables.listing import Listing

SWEEP = "sweep.json"

_WITH_OPTIONS = ("scheme", "topology", "workload")
_MOST = 100_000

_MOST_NAME = 237
"""Bytes of a folder's name: 255 fit, and beside it lies one whose name has 18 more (staging.py)."""

_DIGITS = 8
"""Of the hash in a name that would not do without."""


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


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of one combination.

    settings: the value of each axis, as text
    folder: of the result, below that of the sweep
    result: None where the run failed
    failed: why it did
    """

    settings: dict[str, str]
    folder: str
    result: Result | None
    failed: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Sweep:
    """What came of one experiment at every combination of some keys' values.

    axes: the values of each key, as text
    points: the combinations, the last axis fastest; each has `settings`, the value of each axis, `result`,
    which is None where the run failed, `failed`, why it did, and `folder`
    over_seeds: the last axis is the seed, and the table has the means over it
    command: a command line that runs it again; empty where none can say it
    """

    axes: dict[str, tuple[str, ...]]
    points: tuple[Ended, ...]
    over_seeds: bool = False
    command: str = ""

    @property
    def found(self) -> tuple[tuple[dict[str, str], Result], ...]:
        """The combinations that came to their end: the value of each axis, as text, and the result."""
        return tuple((point.settings, point.result) for point in self.points if point.result is not None)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the combinations that came to their end."""
        return tuple(result for _, result in self.found)

    @property
    def failed(self) -> tuple[str, ...]:
        """The combinations that did not, and why."""
        return tuple(f"{label_of(point.settings)}: {point.failed}" for point in self.points if point.failed)

    @property
    def complete(self) -> bool:
        """Whether every run came to its end, and every flow in it."""
        return not self.failed and all(result.complete for result in self.results)

    @property
    def flows(self) -> Table:
        """The flows of all runs in one Arrow table: Result.flows after a column of text for each axis."""
        return all_flows(self.found)

    @property
    def document(self) -> SweepDocument:
        """What sweep.json holds."""
        entries = [
            PointResult(point.settings, point.folder, failed=point.failed)
            if point.result is None
            else PointResult(point.settings, point.folder, summary=point.result.summary)
            for point in self.points
        ]
        return SweepDocument(self.axes, tuple(entries), self.over_seeds, self.command)

    @property
    def table(self) -> Listing:
        """What `tailrace sweep` shows."""
        points: dict[tuple[tuple[str, str], ...], list[Result]] = {}
        for settings, result in self.found:
            point = tuple(settings.items())[: -1 if self.over_seeds else None]
            points.setdefault(point, []).append(result)
        return make_table(
            [Group(dict(point), label_of(dict(point)), tuple(own)) for point, own in points.items()]
        )

    def markdown(self) -> str:
        """The table of `tailrace sweep`, in Markdown; empty where no run came to its end."""
        return markdown(self.table) if self.found else ""

    def _repr_markdown_(self) -> str:
        """How a notebook shows it."""
        return self.markdown()

    def __repr__(self) -> str:
        """One line: what was varied, and how many runs."""
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<Sweep of {', '.join(self.axes)}: {len(self.results)} runs{failed}>"


class PointResult(msgspec.Struct, frozen=True):
    """A point within sweep.json: its summary, or why there is none."""

    settings: dict[str, str]
    folder: str
    summary: Summary | UnsetType = UNSET
    failed: str | UnsetType = UNSET


class SweepDocument(msgspec.Struct, frozen=True):
    """sweep.json: what was varied, and a point for every combination, the last axis fastest.

    `over_seeds`: that axis is the seed, over which there are means. `command` runs it again.
    """

    axes: dict[str, tuple[str, ...]]
    points: tuple[PointResult, ...]
    over_seeds: bool = False
    command: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError where a point is at no value of an axis."""
        for point in self.points:
            if missing := sorted(self.axes.keys() - point.settings.keys()):
                raise ValueError(f"the point in {point.folder} has no value of {missing[0]}")


def parse_axis(text: str) -> Axis:
    """The axis that KEY=VALUE,VALUE describes.

    Raises:
        SpecError: no such key, or no values.
    """
    key, equals, rest = text.partition("=")
    if not equals or not rest:
        raise SpecError(f"--set {text!r}: expected KEY=VALUE,VALUE")
    _check_key(key)
    return make_axis(key, itertools.chain.from_iterable(map(_range, split_specs(rest, f"--set {key}"))))


def make_axis(key: str, values: Iterable[str]) -> Axis:
    """The axis of a key and its values.

    Raises:
        SpecError: no such key, no values, or too many.
    """
    _check_key(key)
    axis = Axis(key, tuple(itertools.islice(values, _MOST + 1)))
    if not axis.values:
        raise SpecError(f"--set {key}: expected at least one value")
    return axis


def _check_key(key: str) -> None:
    name, dot, option = key.partition(".")
    if name not in KEYS or (dot and (name not in _WITH_OPTIONS or not option)):
        known = (*KEYS, *(f"{each}.OPTION" for each in _WITH_OPTIONS))
        raise SpecError(f"--set {key}: unknown key; {expected(key, known)}")


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of each key of several texts.

    Raises:
        SpecError: no such key, no values, or a key twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    for axis in map(parse_axis, texts):
        if axis.key in found:
            raise SpecError(f"--set {axis.key}: given twice")
        found[axis.key] = axis.values
    return found


def _range(text: str) -> Sequence[str]:
    """The numbers of FIRST..LAST; any other text is one value."""
    found = number_range(text)
    if found is None:
        return (text,)
    first, last = found
    if not first <= last < first + _MOST:
        raise SpecError(f"--set: {text}: expected FIRST..LAST, at most {_MOST} numbers")
    return [str(number) for number in range(first, last + 1)]


def points(
    base: Experiment, axes: Sequence[Axis], target: str, refused: list[Ended] | None = None
) -> list[Point]:
    """Every combination of the axes' values, the last axis fastest.

    Args:
        base: what no axis changes.
        axes: at least one, of different keys.
        target: bmv2, native or virtual.
        refused: is given the combinations that cannot run on their network.

    Raises:
        SpecError: a key twice, a value that a key does not take, or no combination can run.
        ControllerError: the program of no combination is there.
    """
    names = [axis.key for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--set {name}: given twice")
    refuse_above("sweep", "runs", math.prod(len(axis.values) for axis in axes), _MOST)
    folders = {axis.key: _folders(axis) for axis in axes}
    found = []
    errors: list[Error] = []
    for values in itertools.product(*(axis.values for axis in axes)):
        settings = dict(zip(names, values, strict=True))
        experiment = _at(base, settings)
        folder = Path(*(folders[key][value] for key, value in settings.items()))
        try:
            task = make_task(experiment, target, label=label_of(settings), out=folder)
            found.append(Point(settings, task))
        except (SpecError, ControllerError) as error:
            errors.append(error)
            if refused is not None:
                refused.append(Ended(settings, str(folder), None, str(error)))
    if errors and (refused is None or not found):
        raise errors[0]
    return found


def axis_text(axis: Axis) -> str | None:
    """The values of an axis as `parse_axis` takes them behind the key; None where it takes no such values."""
    text = ",".join(axis.values)
    try:
        return text if parse_axis(f"{axis.key}={text}") == axis else None
    except SpecError:
        return None


def _folders(axis: Axis) -> dict[str, str]:
    """The name of the folder of each value; with a hash where it is another value's, too, or too long."""
    found = {value: slug(f"{axis.key}={value}") for value in axis.values}
    counts = Counter(found.values())
    for value, name in found.items():
        if counts[name] > 1 or len(name) > _MOST_NAME:
            digits = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
            found[value] = f"{name[: _MOST_NAME - _DIGITS - 1]}-{digits}"
    return found


def label_of(settings: Mapping[str, str]) -> str:
    """What tells a combination apart."""
    return ",".join(f"{key}={value}" for key, value in settings.items())


def _at(base: Experiment, settings: dict[str, str]) -> Experiment:
    """The experiment at one combination."""
    whole: dict[str, Any] = {key: value for key, value in settings.items() if "." not in key}
    if "fault" in whole:
        whole["fault"] = [whole["fault"]]
    if "follow" in whole:
        whole["follow"] = [whole["follow"]]
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


def open_sweep(folder: str | Path) -> Sweep:
    """What `tailrace sweep` left in a folder.

    Raises:
        FileError: a file is missing, or is not what was written.
    """
    path = Path(folder) / SWEEP
    found = read_struct(path, SweepDocument)
    points = []
    for number, point in enumerate(found.points):
        result = None
        if not isinstance(point.summary, UnsetType):
            label = label_of(point.settings)
            place = within(path, f"points[{number}].folder", point.folder)
            result = read_result(place, case=case_name(point.summary.faults), label=label)
        points.append(Ended(point.settings, point.folder, result, point.failed or ""))
    return Sweep(found.axes, tuple(points), found.over_seeds, found.command)
