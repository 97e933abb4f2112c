# SPDX-License-Identifier: Apache-2.0
"""`tailrace run`: one experiment, from specs or from a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli.complete import complete_specs
from tailrace.cli.experiment_options import DEFAULT_OUT, File, Out, Pcap, Scale, given, with_experiment
from tailrace.cli.options import View, with_view


@with_view
@with_experiment
def run(
    values: dict[str, Any],
    experiment: File = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="ecmp, spray, letflow, flowcut, …, with options", autocompletion=complete_specs("scheme")
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="of flowcut, rlb, spritz or letflow: see tailrace schemes")
    ] = None,
    scale: Scale = None,
    out: Out = DEFAULT_OUT,
    pcap: Pcap = False,
    ranks: Annotated[
        str,
        typer.Option(
            metavar="N|mpi",
            help="so many processes run one network in virtual time, each a part of it; mpi: those that "
            "mpiexec has started",
        ),
    ] = "1",
    stop_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME", help="stop at this virtual time, such as 50us, to look inside; may be repeated"
        ),
    ] = None,
    cli: Annotated[bool, typer.Option("--cli", help="bring the fabric up and show Mininet's prompt")] = False,
    *,
    view: View,
) -> None:
    """Run one experiment: OUT/summary.json, OUT/flows.parquet and a table.

    Options change what EXPERIMENT.toml says. With --seed 1..10 it runs ten times: a folder for each seed,
    and a table of means with their 95 % intervals.

    At --stop-at the run stands still, and `tailrace tables` and the others look at its switches until a line
    is entered: tailrace run --scheme flowcut --target virtual --stop-at 20us
    """
    from tailrace.cli.experiment_command import ResultOutput, open_prompt, run_one, run_seeds, with_ranks
    from tailrace.experiments.plan.experiment_file import read_experiment
    from tailrace.spec import SpecError

    with with_ranks(ranks) as processes:
        chosen = read_experiment(experiment, scale, given({"scheme": scheme, "variant": variant}) | values)
        if cli and stop_at:
            raise SpecError("--stop-at and --cli do not go together")
        if cli and processes != 1:
            raise SpecError("--ranks and --cli do not go together")
        if len(chosen.seeds) > 1 and (cli or stop_at or processes != 1):
            raise SpecError("--seed: several do not go together with --cli, --stop-at and --ranks")
        if cli:
            open_prompt(chosen, ResultOutput(out, view, pcap))
        elif len(chosen.seeds) > 1:
            run_seeds(chosen, ResultOutput(out, view, pcap))
        else:
            run_one(chosen, ResultOutput(out, view, pcap), stop_at or (), processes)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
