# SPDX-License-Identifier: Apache-2.0
"""`tailrace compare`: several schemes on the same traffic, without and with faults."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.experiment_options import DEFAULT_OUT, File, Json, Out, Pcap, Scale, with_experiment
from experiments.defaults import SCHEMES


@with_experiment
def compare(
    values: dict[str, Any],
    experiment: File = None,
    schemes: Annotated[
        str, typer.Option(help="schemes with their options; ratios are against the first")
    ] = ",".join(SCHEMES),
    scale: Scale = None,
    out: Out = DEFAULT_OUT,
    json: Json = False,
    pcap: Pcap = False,
) -> None:
    """Compare schemes: a table, a figure, OUT/comparison.json and a folder OUT/CASE/SCHEME for each run.

    With --fault every scheme runs twice: in a healthy network, then with the faults.
    """
    from experiments.command import Output, run_several
    from experiments.experiment import make
    from experiments.toml_file import base_experiment
    from experiments.words import split_schemes

    names = split_schemes(schemes)
    base = base_experiment(experiment, scale)
    # every scheme is checked before any runs
    bases = [make({**values, "scheme": scheme}, base) for scheme in names]
    run_several(bases[0], names, Output(out, json, pcap))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
