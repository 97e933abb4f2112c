# SPDX-License-Identifier: Apache-2.0
"""Turns a figure's file at one scale (`small`, or `paper` with the paper's sizes) into a grid of runs:
cases × schemes × searched values × seeds. A case is one setting in which schemes are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tailrace.experiments.plan.axes import CASE, SCHEME, SEED, Setting
from tailrace.experiments.plan.experiment import Settings, of_settings
from tailrace.papers.model import Case, PaperFile, Scale, Scheme
from tailrace.spec import SpecError, parse
from tailrace.spec.schema import KeyProblemError, given
from tailrace.study.grid import Grid
from tailrace.study.task import Task, make_task

RUNS = Path("runs")
"""The folder of the runs of all figures; a run that several figures need is stored once."""

_KEY_DIGITS = 16


VALUE = "value"
"""The axis of the values of a search (`tune`); a scheme without a search has one empty value."""


def paper_grid(file: PaperFile, scale: str) -> Grid:
    """The grid with every scheme in every case with every seed, in the order of the file.

    The axes are `case`, `scheme`, `value` and `seed`.

    Raises:
        KeyProblemError: a spec cannot be used; the key names the case and the scheme.
    """
    at_scale = file.scale.of(scale)
    runs: list[tuple[dict[str, Setting], Task]] = []
    for case, scheme in itertools.product(file.cases(scale) or [Case("")], schemes(file, at_scale)):
        values = at_scale.values[scheme.tune.option] if scheme.tune else [""]
        for value, seed in itertools.product(values, at_scale.each_seed):
            settings: dict[str, Setting] = {CASE: case.name, SCHEME: scheme.label, VALUE: value, SEED: seed}
            runs.append((settings, _task(file, scale, case, scheme, value, seed)))
    names = (CASE, SCHEME, VALUE, SEED)
    axes = {key: tuple(dict.fromkeys(settings[key] for settings, _ in runs)) for key in names}
    return Grid(axes, tuple(runs))


def schemes(file: PaperFile, at_scale: Scale) -> Iterator[Scheme]:
    """The schemes of the file, then the schemes of the file's grid."""
    yield from file.scheme
    if file.grid is None:
        return
    for values in itertools.product(*(at_scale.values[option] for option in file.grid.options)):
        spec = parse(file.grid.scheme, "scheme")
        for option, value in zip(file.grid.options, values, strict=True):
            spec = spec.setting(option, value)
        yield Scheme(grid_label(file.grid.options, values), Settings(scheme=str(spec)))


def grid_label(options: list[str], values: tuple[str, ...]) -> str:
    """The label of a point of a grid."""
    return ",".join(f"{option}={value}" for option, value in zip(options, values, strict=True))


def _task(file: PaperFile, scale: str, case: Case, scheme: Scheme, value: str, seed: int) -> Task:
    settings: dict[str, Any] = {}
    # from general to specific settings, which override the general settings
    for layer in (
        *(file.experiment, file.scale.of(scale).experiment),
        *(case.experiment, case.of(scale), scheme.experiment, scheme.of(scale)),
        scheme.cases.get(case.name, Settings()),
    ):
        settings |= given(layer)
    where = " ".join(filter(None, (case.name, scheme.label)))
    try:
        spec = parse(settings["scheme"], "scheme")
        if scheme.tune is not None:
            spec = spec.setting(scheme.tune.option, value)
        for option, text in case.options.items():
            if scheme.takes is None or option in scheme.takes:
                spec = spec.adding(option, text)
        experiment = of_settings({**settings, "scheme": spec, "seed": seed})
    except KeyProblemError as error:
        raise KeyProblemError(f"{error.key} of {where}", error.problem) from error
    except SpecError as error:
        raise KeyProblemError(f"options of {where}", str(error)) from error
    label = " ".join(filter(None, (case.name, scheme.label, value, f"seed {seed}")))
    task = make_task(experiment, experiment.target, label=label, out=RUNS)
    return replace(task, out=RUNS / task.key[:_KEY_DIGITS])
