# SPDX-License-Identifier: Apache-2.0
"""Grids of runs. Comparisons: several schemes on the same topology, workload and seeds, without and with
faults. Sweeps: one experiment, run with every combination of the values of some keys (axes).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from tailrace.experiments.plan.axes import (
    CASE,
    MOST_RUNS,
    SCHEME,
    SEED,
    Axis,
    Setting,
    at_point,
    label_of,
    make_axis,
    run_name,
)
from tailrace.experiments.plan.command import sweep_command
from tailrace.experiments.plan.experiment import Experiment, make
from tailrace.experiments.plan.plan import Plan, on_target, plan
from tailrace.experiments.plan.spec_list import case_name, folder_name, labels
from tailrace.p4rt.errors import ControllerError
from tailrace.results.results import LeftOut, Run
from tailrace.sim.job import REAL_TIME, check_real_time
from tailrace.spec import Error, SpecError
from tailrace.spec.limits import refuse_above
from tailrace.study.grid import Grid
from tailrace.study.task import Task, make_task


def comparison_grid(
    planned: Sequence[tuple[str, Plan]],
    seeds: Sequence[int],
    *,
    first: str = "",
    left_out: Sequence[LeftOut] = (),
    command: str = "",
) -> Grid:
    """The grid of a comparison, with the axes `case` (the name of the faults), `scheme` and `seed`: each plan
    with every seed.

    Args:
        planned: label and plan of each run with one seed, in the order of cases and schemes.
        seeds: each plan runs with all of them.
        first: the label of the scheme to which ratios are relative.
        left_out: schemes that cannot run.
        command: the command line that repeats the comparison.
    """
    runs: list[tuple[dict[str, Setting], Task]] = []
    for label, one_seed in planned:
        case = case_name(one_seed.experiment.faults)
        for seed in seeds:
            settings: dict[str, Setting] = {CASE: case, SCHEME: label, SEED: seed}
            folder = Path(case, folder_name(label), f"{SEED}={seed}" if len(seeds) > 1 else "")
            experiment = structs.replace(one_seed.experiment, seeds=(seed,))
            task = make_task(experiment, one_seed.target, label=label, out=folder, name=run_name(settings))
            runs.append((settings, task))
    axes = {key: tuple(dict.fromkeys(settings[key] for settings, _ in runs)) for key in (CASE, SCHEME, SEED)}
    return Grid(axes, tuple(runs), first, True, tuple(left_out), command)


def plans(
    base: Experiment,
    schemes: Sequence[str],
    target: str,
    names: Sequence[str] = (),
    left_out: list[LeftOut] | None = None,
) -> list[tuple[str, Plan]]:
    """Label and plan of every run with the first seed: each scheme without faults, then, if there are faults,
    each scheme with them.

    A scheme that works with a single transport uses that transport, even if the others use another one.
    `names` are labels that replace those derived from the specs. Schemes that cannot run on the network are
    added to `left_out`.

    Raises:
        SpecError: specs contradict each other, or no scheme can run.
        ControllerError: no scheme's compiled P4 program exists.
    """
    base = on_target(base.each_seed()[0], target)
    made = [base if scheme == base.scheme else make({"scheme": scheme}, base) for scheme in schemes]
    cases: list[list[tuple[str, Plan]]] = [[], []] if base.faults else [[]]
    refused: list[tuple[str, Error]] = []
    for label, experiment in zip(names or labels(schemes), map(_with_usable_transport, made), strict=True):
        try:
            variants = (experiment.without("faults"), experiment)[: len(cases)]
            runnable = [_runnable(variant, target) for variant in variants]
        except (SpecError, ControllerError) as error:
            refused.append((label, error))
            continue
        for case, planned in zip(cases, runnable, strict=True):
            case.append((label, planned))
    reasons = [LeftOut(label, str(error)) for label, error in refused]
    if refused and (left_out is None or not cases[0]):
        if len({scheme.reason for scheme in reasons}) > 1:
            raise SpecError("; ".join(f"{scheme.scheme}: {scheme.reason}" for scheme in reasons))
        raise refused[0][1]
    if left_out is not None:
        left_out += reasons
    return [each for case in cases for each in case]


def _runnable(experiment: Experiment, target: str) -> Plan:
    """The plan of an experiment, after all checks that precede a run.

    Raises:
        SpecError, ControllerError: a check fails.
    """
    planned = plan(experiment, target)
    planned.job.scheme.programs(planned.topology)
    if target in REAL_TIME:
        check_real_time(planned.job)
    return planned


def _with_usable_transport(experiment: Experiment) -> Experiment:
    """The experiment, without its transport if its scheme does not work with that transport."""
    only, wanted = experiment.parsed.scheme.only_transport, experiment.parsed.transport
    if wanted is None or only in (None, wanted.name):
        return experiment
    return experiment.without("transport")


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
