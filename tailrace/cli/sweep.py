# SPDX-License-Identifier: Apache-2.0
"""`tailrace sweep`: one experiment at every combination of some keys' values."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli.experiment_options import (
    DEFAULT_OUT,
    Again,
    Cluster,
    File,
    Out,
    Scale,
    Schemes,
    StoreFolder,
    Workers,
    with_experiment,
)
from tailrace.cli.options import View, with_view


@with_view
@with_experiment
def sweep(
    values: dict[str, Any],
    experiment: File = None,
    axes: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=A,B,C", help="values of a key, or of an option: scheme.rtt=2,3,4"),
    ] = [],  # noqa: B006 - typer copies it
    scheme: Schemes = None,
    scale: Scale = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    again: Again = False,
    out: Out = DEFAULT_OUT,
    store: StoreFolder = None,
    *,
    view: View,
) -> None:
    """Run an experiment once for every combination of the values of --set, which may be repeated.

    A folder of OUT for each run, OUT/results.json and a table. What an earlier call has finished is not run
    again. With --seed 1..10 the table has means over the seeds, with --set seed=1..10 a row for each. With
    --store each run also becomes a line there, for `tailrace results`.

    tailrace sweep it.toml --scheme ecmp,spray --set seed=1..5 --workers 4
    """
    from tailrace.cli.experiment_command import ResultOutput, run_sweep
    from tailrace.experiments.plan.experiment_file import read_experiment
    from tailrace.experiments.plan.spec_list import split_schemes
    from tailrace.spec import SpecError
    from tailrace.study.pool import Where
    from tailrace.study.sweep import parse_axes

    if scheme and len(found := split_schemes(",".join(scheme))) == 1 and axes:
        values["scheme"] = found[0]
    elif scheme:
        axes = [f"scheme={','.join(scheme)}", *axes]
    if not axes:
        raise SpecError("--set: missing; expected KEY=VALUE,VALUE such as seed=1..5")
    parsed = parse_axes(axes)
    if experiment is None:
        if "scheme" not in parsed and "scheme" not in values:
            raise SpecError("EXPERIMENT.toml or --scheme: one must say which scheme runs")
        if "scheme" in parsed:
            values = {"scheme": parsed["scheme"][0], **values}
    chosen = read_experiment(experiment, scale, values)
    run_sweep(chosen, parsed, ResultOutput(out, view), Where(workers, cluster), again=again, store=store)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)
