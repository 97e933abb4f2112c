# SPDX-License-Identifier: Apache-2.0
"""`tailrace compare`: several schemes on the same traffic, without and with faults."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli.experiment_options import (
    DEFAULT_OUT,
    File,
    Json,
    Out,
    Pcap,
    Scale,
    Workers,
    with_experiment,
)
from tailrace.experiments.plan.defaults import SCHEMES


@with_experiment
def compare(
    values: dict[str, Any],
    experiment: File = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            help="schemes with their options; ratios are against the first; without it those of the file, "
            f"or {','.join(SCHEMES)}",
            show_default=False,
        ),
    ] = None,
    scale: Scale = None,
    out: Out = DEFAULT_OUT,
    json: Json = False,
    pcap: Pcap = False,
    workers: Workers = 1,
) -> None:
    """Compare schemes: a table, a figure, OUT/comparison.json and a folder OUT/CASE/SCHEME for each run.

    With --fault every scheme runs twice: in a healthy network, then with the faults. A scheme that works over
    one transport only keeps that, whatever --transport says. With several workers, in virtual time, what an
    earlier call has finished is not run again.
    """
    from tailrace.cli.experiment_command import Output, run_several
    from tailrace.experiments.plan.words import split_schemes

    names = None if schemes is None else split_schemes(schemes)
    run_several(experiment, names, Output(out, json, pcap), values=values, scale=scale, workers=workers)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
