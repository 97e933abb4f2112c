# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one experiment, run with every combination of the values of some keys (axes)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from tailrace.experiments.plan.axes import (
    MOST_RUNS,
    SEED,
    Axis,
    Setting,
    at_point,
    label_of,
    make_axis,
    run_name,
)
from tailrace.experiments.plan.command import sweep_command
from tailrace.experiments.plan.experiment import Experiment
from tailrace.p4rt.errors import ControllerError
from tailrace.results.results import Run
from tailrace.spec import Error, SpecError
from tailrace.spec.limits import refuse_above
from tailrace.study.grid import Grid
from tailrace.study.task import Task, make_task


def sweep_grid(base: Experiment, axes: Sequence[Axis], target: str) -> Grid:
    """The grid of every combination of the axes' values; the last axis varies fastest.

    If the experiment has several seeds and no axis is `seed`, each combination runs with every seed. A
    combination that cannot run on its network is a failed run in the grid.

    Args:
        base: the experiment whose keys the axes change.
        axes: at least one, of different keys.
        target: bmv2, native or virtual.

    Raises:
        SpecError: a key is given twice or does not accept a value, or no combination can run.
        ControllerError: no combination has a compiled P4 program.
    """
    names = [axis.key for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--set {name}: given twice")
    command = sweep_command(base, {axis.key: axis.text for axis in axes})
    # the experiment's seeds become the last axis
    over_seeds = len(base.seeds) > 1 and SEED not in names
    if over_seeds:
        axes = [*axes, make_axis(SEED, map(str, base.seeds))]
    refuse_above("sweep", "runs", math.prod(len(axis.values) for axis in axes), MOST_RUNS)
    folders = {axis.key: axis.folders for axis in axes}
    settings_by_text = {axis.key: dict(zip(axis.values, axis.settings, strict=True)) for axis in axes}
    runs: list[tuple[dict[str, Setting], Task | Run]] = []
    errors: list[Error] = []
    for texts in itertools.product(*(axis.values for axis in axes)):
        point = {axis.key: text for axis, text in zip(axes, texts, strict=True)}
        settings = {key: settings_by_text[key][text] for key, text in point.items()}
        folder = Path(*(folders[key][text] for key, text in point.items()))
        experiment = at_point(base, point)
        try:
            label = label_of(settings)
            task = make_task(experiment, target, label=label, out=folder, name=run_name(settings))
            runs.append((settings, task))
        except (SpecError, ControllerError) as error:
            errors.append(error)
            runs.append((settings, Run(settings, str(folder), None, str(error))))
    if len(errors) == len(runs):
        raise errors[0]
    axis_values = {key: tuple(by_text.values()) for key, by_text in settings_by_text.items()}
    return Grid(axis_values, tuple(runs), over_seeds=over_seeds, command=command)
