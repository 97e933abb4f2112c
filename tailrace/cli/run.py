# SPDX-License-Identifier: Apache-2.0
"""`tailrace run`: one experiment, from specs or from a file."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.complete import complete_specs
from tailrace.cli.experiment_options import (
    ENTRIES,
    EXPERIMENT,
    FILE,
    OUT,
    P4INFO,
    PCAP,
    PROGRAM,
    SCALE,
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
        metavar="TIME",
        action="append",
        help="pause at this virtual time, such as 50us, for inspection; may be repeated",
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
