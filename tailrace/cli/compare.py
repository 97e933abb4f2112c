# SPDX-License-Identifier: Apache-2.0
"""`tailrace compare`: several schemes on the same traffic, without and with faults."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.experiment_options import (
    AGAIN,
    EXPERIMENT,
    FILE,
    OUT,
    PCAP,
    SCALE,
    SCHEMES,
    WORKERS,
    values_of,
)
from tailrace.cli.options import PLUGIN, view_of, view_options


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
