# SPDX-License-Identifier: Apache-2.0
"""`tailrace sweep`: one experiment at every combination of some keys' values."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.experiment_options import (
    AGAIN,
    CLUSTER,
    EXPERIMENT,
    FILE,
    OUT,
    SCALE,
    SCHEMES,
    STORE,
    WORKERS,
    values_of,
)
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    FILE,
    argument(
        "--set",
        dest="axes",
        metavar="KEY=A,B,C",
        action="append",
        help="values of a key, such as seed=1..5, or of a spec's option, such as scheme.rtt=2,3,4",
    ),
    *(SCHEMES, SCALE, WORKERS, CLUSTER, AGAIN, OUT, STORE, PLUGIN, EXPERIMENT),
    view_options("results.table"),
)
def sweep(args: Namespace) -> None:
    """Run an experiment once for every combination of the values of --set, which may be repeated.

    Writes a folder in OUT for each run, OUT/results.json and a table. Runs that an earlier call has finished
    are not repeated. With --seed 1..10 the table has means over the seeds, with --set seed=1..10 a row for
    each seed. With --store each run is also stored there as a row, for `tailrace results`.

        tailrace sweep it.toml --scheme ecmp,spray --set seed=1..5 --workers 4
    """
    from tailrace import api
    from tailrace.cli.experiment_command import ResultOutput, run_study
    from tailrace.experiments.plan.axes import parse_axes
    from tailrace.experiments.plan.experiment_file import read_experiment
    from tailrace.experiments.plan.spec_list import split_schemes
    from tailrace.spec import SpecError

    values, axes, schemes = values_of(args), args.axes or [], ",".join(args.scheme or ())
    if schemes and axes and len(split_schemes(schemes)) == 1:
        values["scheme"] = schemes
    elif schemes:
        axes = [f"scheme={schemes}", *axes]
    if not axes:
        raise SpecError("--set: missing; expected KEY=VALUE,VALUE such as seed=1..5")
    parsed = parse_axes(axes)
    if args.experiment is None:
        if "scheme" not in parsed and "scheme" not in values:
            raise SpecError("EXPERIMENT.toml or --scheme: one of them must give the scheme")
        if "scheme" in parsed:
            values = {"scheme": parsed["scheme"][0], **values}
    chosen = read_experiment(args.experiment, args.scale, values)
    run_study(
        api.sweep,
        chosen,
        parsed,
        output=ResultOutput(args.out, view_of(args)),
        axes=tuple(parsed),
        workers=args.workers,
        cluster=args.cluster,
        again=args.again,
        store=args.store,
    )
