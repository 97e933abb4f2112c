# SPDX-License-Identifier: Apache-2.0
"""`tailrace run`, `compare` and `sweep`: experiments, from specs or from files."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.complete import complete_specs
from tailrace.cli.experiment_options import (
    AGAIN,
    CLUSTER,
    ENTRIES,
    EXPERIMENT,
    FILE,
    OUT,
    P4INFO,
    PCAP,
    PROGRAM,
    SCALE,
    SCHEMES,
    STORE,
    WORKERS,
    given,
    scheme_option,
    values_of,
)
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    FILE,
    argument(
        "--scheme",
        metavar="SPEC",
        help="ecmp, spray, letflow, flowcut, …, with options",
        complete=complete_specs("scheme"),
    ),
    argument(
        "--variant", metavar="NAME", help="variant of flowcut, rlb, spritz or letflow; see tailrace schemes"
    ),
    PROGRAM,
    P4INFO,
    ENTRIES,
    SCALE,
    OUT,
    PCAP,
    argument(
        "--ranks",
        metavar="N|mpi",
        default="1",
        help="number of processes that share one network in virtual time, each with a part of it; mpi: the "
        "processes that mpiexec has started",
    ),
    argument(
        "--stop-at",
        metavar="TIME|EXPR",
        action="append",
        help="pause for inspection at this virtual time, such as 50us, or when a condition first holds, "
        "such as drain or 'queue>100KB'; may be repeated",
    ),
    flag("--cli", help="start the network and open Mininet's prompt"),
    PLUGIN,
    EXPERIMENT,
    view_options("results.table"),
)
def run(args: Namespace) -> None:
    """Run one experiment: OUT/summary.json, OUT/flows.parquet and a table.

    Options override values in EXPERIMENT.toml. With --seed 1..10 it runs ten times: a folder for each seed,
    and a table of means with their 95 % intervals.

    At --stop-at the run pauses until Enter is pressed; meanwhile commands such as `tailrace tables` can
    inspect its switches: tailrace run --scheme flowcut --target virtual --stop-at 20us
    """
    from tailrace import api
    from tailrace.cli.experiment_command import ResultOutput, open_prompt, run_one, run_study, with_ranks
    from tailrace.experiments.plan.experiment_file import read_experiment
    from tailrace.spec import SpecError

    values = values_of(args)
    output = ResultOutput(args.out, view_of(args), args.pcap)
    with with_ranks(args.ranks) as processes:
        schemes = given({"scheme": scheme_option(args), "variant": args.variant})
        chosen = read_experiment(args.experiment, args.scale, schemes | values)
        if args.cli and args.stop_at:
            raise SpecError("--stop-at and --cli do not go together")
        if args.cli and processes != 1:
            raise SpecError("--ranks and --cli do not go together")
        if len(chosen.seeds) > 1 and (args.cli or args.stop_at or processes != 1):
            raise SpecError("--seed: several seeds do not go together with --cli, --stop-at and --ranks")
        if args.cli:
            open_prompt(chosen, output)
        elif len(chosen.seeds) > 1:
            run_study(api.repeat, chosen, output=output, pcap=args.pcap)
        else:
            run_one(chosen, output, args.stop_at or (), processes)


@command(FILE, SCHEMES, SCALE, OUT, PCAP, WORKERS, AGAIN, PLUGIN, EXPERIMENT, view_options("results.table"))
def compare(args: Namespace) -> None:
    """Compare schemes: a table, a figure, OUT/results.json and a folder OUT/CASE/SCHEME for each run.

    Without --scheme it takes the schemes of EXPERIMENT, else ecmp, letflow and flowcut. Ratios are to the
    first scheme.

    With --fault every scheme runs twice: in a healthy network, then with the faults. A scheme that works over
    only one transport ignores --transport. With --seed 1..10 every scheme runs ten times, each time with
    other traffic, which is the same for all schemes: the table has means with their 95 % intervals, and
    ratios computed for each seed. In virtual time, runs that an earlier call has finished are not repeated.
    """
    from tailrace import api
    from tailrace.cli.experiment_command import ResultOutput, run_study
    from tailrace.experiments.plan.spec_list import split_schemes

    values = values_of(args)
    names = split_schemes(",".join(args.scheme)) if args.scheme else None
    run_study(
        api.compare,
        args.experiment,
        names,
        output=ResultOutput(args.out, view_of(args)),
        compared=str(args.experiment or ""),
        scale=args.scale,
        pcap=args.pcap,
        workers=args.workers,
        again=args.again,
        **values,
    )


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
