# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one experiment at every combination of some keys' values.

seed=1..5                                  whole numbers from 1 to 5
scheme=ecmp,flowcut:variant=nic,rtt=3      specs; a piece key=value belongs to the spec before it
scheme.rtt=2,3,4                           an option of the spec, which keeps the others
fault=none,link-slow:fraction=0.01,factor=0.1
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.command import sweep_command
from tailrace.experiments.plan.experiment import KEYS, Experiment, Settings, of_settings
from tailrace.experiments.plan.seeds import number_range, parse_seeds
from tailrace.experiments.plan.spec_list import slug, split_specs
from tailrace.p4rt.errors import ControllerError
from tailrace.results.results import SEED, Run, Setting, label_of, run_name, setting
from tailrace.spec import Error, SpecError, parse
from tailrace.spec.limits import refuse_above
from tailrace.spec.schema import KeyProblemError, convert, given
from tailrace.spec.suggest import expected
from tailrace.study.grid import Grid
from tailrace.study.task import Task, make_task

_WITH_OPTIONS = ("scheme", "topology", "workload")
_MOST = 100_000

_MOST_NAME = 237
"""Bytes of a folder's name: 255 fit, and beside it lies one whose name has 18 more (atomic_folder.py)."""

_DIGITS = 8
"""Of the hash in a name that would not do without."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, or an option of a key's spec (`scheme.rtt`), and its values."""

    key: str
    values: tuple[str, ...]


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
    axes: dict[str, tuple[str, ...]] = {}
    for axis in map(parse_axis, texts):
        if axis.key in axes:
            raise SpecError(f"--set {axis.key}: given twice")
        axes[axis.key] = axis.values
    return axes


def _range(text: str) -> Sequence[str]:
    """The numbers of FIRST..LAST; any other text is one value."""
    bounds = number_range(text)
    if bounds is None:
        return (text,)
    first, last = bounds
    if not first <= last < first + _MOST:
        raise SpecError(f"--set: {text}: expected FIRST..LAST, at most {_MOST} numbers")
    return [str(number) for number in range(first, last + 1)]


def sweep_grid(base: Experiment, axes: Sequence[Axis], target: str) -> Grid:
    """Every combination of the axes' values, the last axis fastest.

    With several seeds, and no axis `seed`, each combination runs with every seed. A combination that cannot
    run on its network is a failed run.

    Args:
        base: what no axis changes.
        axes: at least one, of different keys.
        target: bmv2, native or virtual.

    Raises:
        SpecError: a key twice, a value that a key does not take, or no combination can run.
        ControllerError: the program of no combination is there.
    """
    names = [axis.key for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--set {name}: given twice")
    command = sweep_command(base, {axis.key: axis_text(axis) for axis in axes})
    over_seeds = len(base.seeds) > 1 and SEED not in names
    if over_seeds:
        axes = [*axes, make_axis(SEED, map(str, base.seeds))]
    refuse_above("sweep", "runs", math.prod(len(axis.values) for axis in axes), _MOST)
    folders = {axis.key: _folders(axis) for axis in axes}
    values = {axis.key: dict(zip(axis.values, _settings(axis), strict=True)) for axis in axes}
    runs: list[tuple[dict[str, Setting], Task | Run]] = []
    errors: list[Error] = []
    for texts in itertools.product(*(axis.values for axis in axes)):
        point = {axis.key: text for axis, text in zip(axes, texts, strict=True)}
        settings = {key: values[key][text] for key, text in point.items()}
        folder = Path(*(folders[key][text] for key, text in point.items()))
        experiment = _at(base, point)
        try:
            label = label_of(settings)
            task = make_task(experiment, target, label=label, out=folder, name=run_name(settings))
            runs.append((settings, task))
        except (SpecError, ControllerError) as error:
            errors.append(error)
            runs.append((settings, Run(settings, str(folder), None, str(error))))
    if len(errors) == len(runs):
        raise errors[0]
    axis_values = {key: tuple(by_text.values()) for key, by_text in values.items()}
    return Grid(axis_values, tuple(runs), over_seeds=over_seeds, command=command)


def _settings(axis: Axis) -> list[Setting]:
    """The values of an axis as results have them: numbers where all are, and every seed."""
    is_seed = axis.key == SEED
    numbers = [_seed(text) if is_seed else setting(text) for text in axis.values]
    if is_seed and len(set(numbers)) < len(numbers):
        raise SpecError(f"--set {SEED}: a seed is given twice")
    # 2 and 2.0 are two values
    is_text = len(set(numbers)) < len(numbers) or any(isinstance(value, str) for value in numbers)
    return list(axis.values) if is_text else numbers


def _seed(text: str) -> int:
    try:
        return parse_seeds(text)[0]
    except SpecError as error:
        raise SpecError(f"{SEED}: {error}") from error


def axis_text(axis: Axis) -> str | None:
    """The values of an axis as `parse_axis` takes them behind the key; None where it takes no such values."""
    text = ",".join(axis.values)
    try:
        return text if parse_axis(f"{axis.key}={text}") == axis else None
    except SpecError:
        return None


def _folders(axis: Axis) -> dict[str, str]:
    """The name of the folder of each value; with a hash where it is another value's, too, or too long."""
    names = {value: slug(f"{axis.key}={value}") for value in axis.values}
    counts = Counter(names.values())
    for value, name in names.items():
        if counts[name] > 1 or len(name) > _MOST_NAME:
            digits = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
            names[value] = f"{name[: _MOST_NAME - _DIGITS - 1]}-{digits}"
    return names


def _at(base: Experiment, settings: dict[str, str]) -> Experiment:
    """The experiment at one combination."""
    specs: dict[str, Any] = {key: value for key, value in settings.items() if "." not in key}
    if "fault" in specs:
        specs["fault"] = [specs["fault"]]
    if "follow" in specs:
        specs["follow"] = [specs["follow"]]
    changes = given(convert(specs, Settings, strict=False))
    options = {}
    for key, value in settings.items():
        name, dot, option = key.partition(".")
        if dot:
            options[name] = f"{key}={value}"
            changes[name] = parse(changes.get(name) or _base_spec(base, name), name).setting(option, value)
    try:
        return of_settings(changes, base)
    except KeyProblemError as error:
        if error.key in options:
            raise SpecError(f"--set {options[error.key]}: {error.problem}") from error
        raise


def _base_spec(base: Experiment, name: str) -> str:
    """The spec that an axis `name.OPTION` changes where no axis has the spec itself."""
    if name == "workload":
        return base.workload or defaults.workload(base.target)
    return base.scheme if name == "scheme" else base.topology
