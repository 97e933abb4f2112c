# SPDX-License-Identifier: Apache-2.0
"""Experiment files: TOML with the keys of tailrace/experiments/plan/experiment.py.

    scheme = "flowcut:variant=ingress"
    topology = "fat-tree:k=4,rate=10Gbps"
    workload = "permutation:size=256KiB"
    fault = ["link-slow:fraction=0.1,factor=0.1"]
    seed = 7

    [schemes]                           # instead of `scheme`: what `tailrace compare` compares, by label
    ecmp = "ecmp"                       # `tailrace run` and `sweep` take the first one
    "flowcut nic" = "flowcut:variant=nic"

    [scale.paper]                       # what `--scale paper` changes; `small` is the other scale
    topology = "fat-tree:k=16,rate=200Gbps"

    [elsewhere]                         # keys that apply instead if --topology is given: names of links and
                                        # hosts above may not exist in that topology
    fault = "link-slow:fraction=0.1,factor=0.1"

Paths in a file of topologies and workloads are relative to the current directory, as on the command line.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tailrace.experiments.plan.experiment import FLAGS, KEYS, Experiment, Settings, of_settings
from tailrace.experiments.plan.known import scheme_of
from tailrace.experiments.plan.seeds import parse_seeds
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.schema import KeyProblemError, convert, given, in_file, read_toml
from tailrace.spec.spec_string import check_text
from tailrace.spec.suggest import expected, unknown

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 +._-]*")
"""Labels also serve as folder names."""

PRESETS = Path(__file__).resolve().parents[1] / "presets"
"""Experiment files that come with this package, by name: `tailrace compare common`."""

SCALES = ("small", "paper")
"""Scales that a file may define: one that takes seconds on a laptop, and that of the paper."""


PLUGIN = "plugin"
"""The option that loads plug-ins; it is not a key of an experiment."""

_Schemes = Annotated[
    dict[str, Annotated[str, Meta(description="a string such as 'flowcut:variant=full'")]],
    Meta(description="a table of labels with strings such as 'flowcut:variant=full'"),
]


class SizedSettings(Settings, frozen=True, forbid_unknown_fields=True):
    """The settings that a scale changes; its schemes replace those with the same label."""

    schemes: _Schemes = msgspec.field(default_factory=dict)


class Scales(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The changes of each scale."""

    small: SizedSettings = SizedSettings()
    paper: SizedSettings = SizedSettings()

    def of(self, scale: str | None) -> SizedSettings:
        """The changes of a scale; no changes for None."""
        if scale is None:
            return SizedSettings()
        return self.small if scale == "small" else self.paper


class ExperimentFile(Settings, frozen=True, forbid_unknown_fields=True):
    """A whole experiment file."""

    schemes: _Schemes = msgspec.field(default_factory=dict)
    scale: Scales = Scales()
    elsewhere: Settings = Settings()


def existing_file(path: Path) -> Path:
    """The file that is meant: `path` itself, or the preset of that name.

    Raises:
        FileError: there is neither.
    """
    if path.suffix or path.name != str(path) or path.exists():
        return path
    preset = PRESETS / f"{path.name}.toml"
    if not preset.is_file():
        names = sorted(file.stem for file in PRESETS.glob("*.toml"))
        raise FileError(path, "", f"no such file or preset; {expected(path.name, names, 'FILE.toml')}")
    return preset


def read_experiment(
    path: Path | None, scale: str | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> Experiment:
    """The experiment of a file, at one of its scales; options override the file.

    Args:
        path: the file; None if there are only options.
        scale: one of SCALES, or None.
        options: by key, as values of TOML types.

    Raises:
        FileError: the file cannot be read, or has an unexpected key or value.
        KeyProblemError: an option has an unexpected key or value.
        SpecError: there is no such scale, or a scale is given without a file.
    """
    if scale is not None and scale not in SCALES:
        raise SpecError(f"--scale: {unknown(scale, SCALES)}")
    settings_given = given(convert(options, Settings))
    if path is None and scale is not None:
        raise SpecError("--scale needs an experiment file that defines this scale")
    if path is None:
        return of_settings(settings_given)
    try:
        settings = _settings(path, scale, settings_given)
        if "scheme" in settings_given:
            settings.pop("variant", None)
        return of_settings(settings | settings_given)
    except KeyProblemError as error:
        if error.key in settings_given:
            raise
        raise in_file(path, error) from error


def read_option_string(text: str) -> Experiment:
    """The experiment whose `option_string` this is.

    Raises:
        SpecError: `text` is not a list of options of a run, or a value cannot be used.
    """
    check_text(text, "options of a run")
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise SpecError(f"no options of a run: {error}") from error
    values = read_options(arguments)
    for key, value in values.items():
        # `follow` is a list of ids even if there is only one id
        if isinstance(value, list) and len(value) == 1 and key != "follow":
            values[key] = value[0]
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SpecError(f"no options of a run: {error}") from error
    return of_settings(given(settings))


def read_options(arguments: Sequence[str], also: Sequence[str] = ()) -> dict[str, Any]:
    """The values of options by key: a list for each, True for flags; `--plugin` and `also` are left out.

    Raises:
        SpecError: an argument is not an option of a run, or has no value.
    """
    ignored = (PLUGIN, *also)
    values: dict[str, Any] = {}
    pieces = deque(arguments)
    while pieces:
        option = pieces.popleft()
        key = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or key not in (*KEYS, *ignored):
            raise SpecError(f"not an option of a run: {option!r}")
        if key in FLAGS:
            values[key] = True
        elif not pieces:
            raise SpecError(f"no options of a run: {option} has no value")
        else:
            values.setdefault(key, []).append(pieces.popleft())
    return {key: value for key, value in values.items() if key not in ignored}


def _file(path: Path) -> ExperimentFile:
    """Reads an experiment file."""
    file = convert(read_toml(existing_file(path)), ExperimentFile)
    for name in SCALES:
        _check_seed(file.scale.of(name), f"scale.{name}.seed")
    _check_seed(file.elsewhere, "elsewhere.seed")
    return file


def _check_seed(settings: Settings, key: str) -> None:
    """Refuses invalid seeds even in a part of the file that is not used now."""
    if not isinstance(settings.seed, msgspec.UnsetType):
        try:
            parse_seeds(settings.seed)
        except SpecError as error:
            raise KeyProblemError(key, str(error)) from error


def _settings(path: Path, scale: str | None, explicit: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file at a scale, with the first of its schemes; `explicit` options override it."""
    file = _file(path)
    settings, changes = given(file), given(file.scale.of(scale))
    del settings["scale"], settings["elsewhere"]
    if scale is not None and not any(changes.values()):
        raise FileError(path, f"key 'scale.{scale}'", "missing, and --scale asks for it")
    settings |= changes
    del settings["schemes"]
    if "topology" in explicit:
        settings |= given(file.elsewhere)
    variant_of_first = "variant" in explicit and "scheme" not in explicit and "scheme" not in settings
    for spec in _schemes(file, scale, skip_first=variant_of_first).values():
        settings.setdefault("scheme", spec)
    return settings


def schemes_of(path: Path | None, scale: str | None = None) -> dict[str, str]:
    """The schemes that an experiment file lists, specs by label; empty if it lists none, or without a file.

    Raises:
        FileError: the file cannot be read, or a scheme in it is invalid.
    """
    if path is None:
        return {}
    try:
        return _schemes(_file(path), scale)
    except KeyProblemError as error:
        raise in_file(path, error) from error


def _schemes(file: ExperimentFile, scale: str | None, *, skip_first: bool = False) -> dict[str, str]:
    """The schemes of a file at one of its scales.

    Args:
        skip_first: do not check the first scheme, since a variant of it will run instead.

    Raises:
        KeyProblemError: a scheme is invalid, or its label cannot be a folder name.
    """
    changes = file.scale.of(scale).schemes
    for label in changes:
        if label not in file.schemes:
            raise KeyProblemError(f"scale.{scale}.schemes.{label}", "expected a label that is in schemes")
    schemes = file.schemes | changes
    for index, (label, spec) in enumerate(schemes.items()):
        check_label(label)
        try:
            if index or not skip_first:
                scheme_of(spec)
        except SpecError as error:
            raise KeyProblemError(f"schemes.{label}", str(error)) from error
    return schemes


def check_label(label: str) -> None:
    """Raises KeyProblemError if the label cannot be a folder name."""
    if _LABEL.fullmatch(label) is None:
        raise KeyProblemError(f"schemes.{label}", "expected a label of letters, digits, spaces and +-._")
