# SPDX-License-Identifier: Apache-2.0
"""Experiment files: TOML with the keys of experiments/experiment.py.

    scheme = "flowcut:variant=ingress"
    topology = "fat-tree:k=4,rate=10Gbps"
    workload = "permutation:size=256KiB"
    fault = ["link-slow:fraction=0.1,factor=0.1"]
    seed = 7

    [scale.paper]                       # what `--scale paper` changes; `small` is the other scale
    topology = "fat-tree:k=16,rate=200Gbps"

Paths in a file (FILE.json, FILE.csv) count from the folder in which the command runs, as on the command line.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from experiments.errors import FileError
from experiments.experiment import Experiment, Settings, make
from experiments.schema import KeyProblemError, convert, given, in_file, read_toml
from spec import SpecError

SCALES = ("small", "paper")
"""Sizes that a file may know: seconds on a laptop, and the size of the paper."""


class Scales(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each scale changes."""

    small: Settings = Settings()
    paper: Settings = Settings()

    def of(self, scale: str | None) -> Settings:
        """The changes of a scale; none without one."""
        if scale is None:
            return Settings()
        return self.small if scale == "small" else self.paper


class ExperimentFile(Settings, frozen=True, forbid_unknown_fields=True):
    """A whole experiment file."""

    scale: Scales = Scales()


def read_experiment(path: Path, scale: str | None = None) -> Experiment:
    """The experiment of a file, at one of its scales.

    Raises:
        FileError: the file cannot be read, or a key or value is not what was expected.
    """
    values = read_toml(path)
    try:
        file = convert(values, ExperimentFile)
        settings = given(file)
        del settings["scale"]
        changes = given(file.scale.of(scale))
        if scale is not None and not changes:
            raise FileError(path, f"key 'scale.{scale}'", "missing, and --scale asks for it")
        return make(settings | changes)
    except KeyProblemError as error:
        raise in_file(path, error) from error


def base_experiment(path: Path | None, scale: str | None) -> Experiment | None:
    """What options change: the experiment of a file, None without one.

    Raises:
        FileError: as `read_experiment`.
        SpecError: there is no such scale, or it is given without a file.
    """
    if scale is not None and scale not in SCALES:
        raise SpecError(f"--scale: expected one of {', '.join(SCALES)}, found {scale!r}")
    if path is None:
        if scale is not None:
            raise SpecError("--scale needs an experiment file that knows it")
        return None
    return read_experiment(path, scale)
