# SPDX-License-Identifier: Apache-2.0
"""The identity of a run, independent of the code: its experiment's specs and the contents of their files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from tailrace.experiments.plan.experiment import Experiment
from tailrace.spec.files import bytes_of
from tailrace.spec.spec_string import is_file

_DIGITS = 16
"""Hexadecimal digits of the hash of an experiment, and of that of the code."""

_ALWAYS = ("scheme", "topology", "workload", "target")
"""Specs that are stored even where they are the default."""

_SEPARATORS = re.compile(r" \+ |[:,=]")
_DEFAULTS = {item.name: item.default for item in structs.fields(Experiment)}


def run_id_of(experiment: Experiment) -> str:
    """The id of the run of an experiment with a single seed.

    Raises:
        SpecError: it has several seeds, or a file that its specs name cannot be read.
    """
    return run_id(specs_of(experiment), files_of(experiment))


def run_id(specs: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """The id of a run, independent of the code: 16 hexadecimal digits.

    Args:
        specs: the result of `specs_of` for an experiment.
        files: the result of `files_of` for it.
    """
    return short_hash(msgspec.json.encode((specs, files), order="sorted"))


def specs_of(experiment: Experiment) -> dict[str, Any]:
    """The specs of an experiment with a single seed, by field; defaults are left out except for a few.

    Raises:
        SpecError: it has several seeds.
    """
    specs = {
        name: value
        for name, value in experiment.written.items()
        if value is not None and (name in _ALWAYS or value != _DEFAULTS[name])
    }
    specs.pop("seeds", None)
    return specs | {"seed": experiment.seed}


def files_of(experiment: Experiment) -> dict[str, str]:
    """The SHA-256 of each file that the specs name, by the name used there; those of the scheme by their
    path from the present folder.

    Raises:
        SpecError: a file cannot be read, or it is not clear which file is meant.
    """
    specs = (experiment.topology, experiment.workload or "", *experiment.faults)
    names = [piece for spec in specs for piece in _SEPARATORS.split(spec) if is_file(piece)]
    names = [name for name in names if Path(name).is_file()]
    names += map(os.path.relpath, experiment.parsed.scheme.files(experiment.parsed.topology))
    return {name: hashlib.sha256(bytes_of(Path(name))).hexdigest() for name in names}


def short_hash(text: bytes) -> str:
    """The first hexadecimal digits of the SHA-256 of `text`."""
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
