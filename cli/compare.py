# SPDX-License-Identifier: Apache-2.0
"""`tailrace compare`: several schemes on the same traffic, without and with faults."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.run import (
    DEFAULT_OUT,
    Fault,
    Flows,
    Json,
    Out,
    Pcap,
    Seed,
    Target,
    TimeScale,
    Topology,
    Transport,
    Window,
    Workload,
    given,
)
from experiments.defaults import SCHEMES


def compare(
    schemes: Annotated[
        str, typer.Option(help="schemes with their options; ratios are against the first")
    ] = ",".join(SCHEMES),
    topology: Topology = None,
    workload: Workload = None,
    flows: Flows = None,
    target: Target = None,
    seed: Seed = None,
    fault: Fault = None,
    time_scale: TimeScale = None,
    transport: Transport = None,
    window: Window = None,
    out: Out = DEFAULT_OUT,
    json: Json = False,
    pcap: Pcap = False,
) -> None:
    """Compare schemes: a table, a figure, OUT/comparison.json and a folder OUT/CASE/SCHEME for each run.

    With --fault every scheme runs twice: in a healthy network, then with the faults.
    """
    values = given(
        topology=topology,
        workload=workload,
        flows=flows,
        target=target,
        seed=seed,
        fault=fault,
        time_scale=time_scale,
        transport=transport,
        window=window,
    )
    from experiments.command import Output, run_several
    from experiments.experiment import make
    from experiments.words import split_schemes

    names = split_schemes(schemes)
    # every scheme is checked before any runs
    bases = [make({**values, "scheme": scheme}) for scheme in names]
    run_several(bases[0], names, Output(out, json, pcap))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
