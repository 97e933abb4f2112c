# SPDX-License-Identifier: Apache-2.0
"""Axes of a grid of runs (keys of an experiment with their values), and names of runs made from them.

seed=1..5                                  whole numbers from 1 to 5
scheme=ecmp,flowcut:variant=nic,rtt=3      specs; a piece key=value belongs to the spec before it
scheme.rtt=2,3,4                           one option of the scheme's spec; its other options stay
fault=none,link-slow:fraction=0.01,factor=0.1
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.experiment import KEYS, Experiment, Settings, of_settings
from tailrace.experiments.plan.seeds import number_range, parse_seeds
from tailrace.experiments.plan.spec_list import slug, split_specs
from tailrace.spec import SpecError, parse
from tailrace.spec.schema import KeyProblemError, convert, given
from tailrace.spec.suggest import expected

Setting = str | Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | float
"""A value of an axis in results: a number if the string reads as one."""

CASE, SCHEME, SEED = "case", "scheme", "seed"
"""The axes of a comparison. A case is without faults, or with the faults of the experiment."""

_WITH_OPTIONS = ("scheme", "topology", "workload")
MOST_RUNS = 100_000
"""Most runs in a sweep, and most values on an axis."""

_MOST_NAME = 237
"""Longest folder name in bytes: file systems allow 255, and temporary names add 18 (atomic_folder.py)."""

_DIGITS = 8
"""Hexadecimal digits of the hash that makes a folder name unique or short enough."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, or an option of a key's spec (`scheme.rtt`), and its values."""

    key: str
    values: tuple[str, ...]

    @property
    def text(self) -> str | None:
        """The values as written after KEY=; None if `parse_axis` would not read this axis from them."""
        text = ",".join(self.values)
        try:
            return text if parse_axis(f"{self.key}={text}") == self else None
        except SpecError:
            return None

    @property
    def settings(self) -> list[Setting]:
        """The values as results store them: numbers if all are numbers; seeds always are.

        Raises:
            SpecError: a value is not a seed, or a seed is given twice.
        """
        is_seed = self.key == SEED
        numbers = [_seed(text) if is_seed else _setting(text) for text in self.values]
        if is_seed and len(set(numbers)) < len(numbers):
            raise SpecError(f"--set {SEED}: a seed is given twice")
        # 2 and 2.0 are equal as numbers, but two values of the axis
        is_text = len(set(numbers)) < len(numbers) or any(isinstance(value, str) for value in numbers)
        return list(self.values) if is_text else numbers

    @property
    def folders(self) -> dict[str, str]:
        """The folder name of each value, with a hash if two values would share it, or if it is too long."""
        names = {value: slug(f"{self.key}={value}") for value in self.values}
        counts = Counter(names.values())
        for value, name in names.items():
            if counts[name] > 1 or len(name) > _MOST_NAME:
                digits = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
                names[value] = f"{name[: _MOST_NAME - _DIGITS - 1]}-{digits}"
        return names


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
    axis = Axis(key, tuple(itertools.islice(values, MOST_RUNS + 1)))
    if not axis.values:
        raise SpecError(f"--set {key}: expected at least one value")
    return axis


def _check_key(key: str) -> None:
    name, dot, option = key.partition(".")
    if name not in KEYS or (dot and (name not in _WITH_OPTIONS or not option)):
        known = (*KEYS, *(f"{each}.OPTION" for each in _WITH_OPTIONS))
        raise SpecError(f"--set {key}: unknown key; {expected(key, known)}")


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values by key of several KEY=VALUE,VALUE strings.

    Raises:
        SpecError: no such key, no values, or a key given twice.
    """
    axes: dict[str, tuple[str, ...]] = {}
    for axis in map(parse_axis, texts):
        if axis.key in axes:
            raise SpecError(f"--set {axis.key}: given twice")
        axes[axis.key] = axis.values
    return axes


def _range(text: str) -> Sequence[str]:
    """The numbers of FIRST..LAST as strings; any other string is a single value."""
    bounds = number_range(text)
    if bounds is None:
        return (text,)
    first, last = bounds
    if not first <= last < first + MOST_RUNS:
        raise SpecError(f"--set: {text}: expected FIRST..LAST, at most {MOST_RUNS} numbers")
    return [str(number) for number in range(first, last + 1)]


def _seed(text: str) -> int:
    try:
        return parse_seeds(text)[0]
    except SpecError as error:
        raise SpecError(f"{SEED}: {error}") from error


def _setting(text: str) -> Setting:
    """The value of an axis: a number if `text` is exactly how Python prints it, else the string itself."""
    for number in (int, float):
        with suppress(ValueError):
            value = number(text)
            if str(value) == text and abs(value) < 1 << 53:
                return value
    return text


def run_name(settings: Mapping[str, Setting]) -> str:
    """The settings of a run on one line: `link-slow ecmp seed=3`."""
    bare = (CASE, SCHEME)
    return " ".join(f"{value}" if key in bare else f"{key}={value}" for key, value in settings.items())


def label_of(settings: Mapping[str, Setting]) -> str:
    """The label of runs in a table: their settings without the case and the seed."""
    shown = {key: value for key, value in settings.items() if key not in (CASE, SEED)}
    return run_name(shown) or f"{SEED}={settings.get(SEED)}"


def at_point(base: Experiment, settings: Mapping[str, str]) -> Experiment:
    """The experiment at one point of the grid; `settings` has one value for each axis, by key.

    Raises:
        SpecError: a key does not accept its value.
    """
    specs: dict[str, Any] = {key: value for key, value in settings.items() if "." not in key}
    if "fault" in specs:
        specs["fault"] = [specs["fault"]]
    if "follow" in specs:
        specs["follow"] = [specs["follow"]]
    changes = given(convert(specs, Settings, strict=False))  # given: the keys that are set, with their values
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
    """The spec whose option an axis `name.OPTION` changes if no axis sets the spec itself."""
    if name == "workload":
        return base.workload or defaults.workload(base.target)
    return base.scheme if name == "scheme" else base.topology
