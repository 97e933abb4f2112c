# SPDX-License-Identifier: Apache-2.0
"""`tailrace compare`: several schemes on the same traffic, without and with faults."""

from __future__ import annotations

from typing import Any

import typer

from tailrace.cli.experiment_options import (
    DEFAULT_OUT,
    Again,
    File,
    Out,
    Pcap,
    Scale,
    Schemes,
    Workers,
    with_experiment,
)
from tailrace.cli.options import View, with_view


@with_view
@with_experiment
def compare(
    values: dict[str, Any],
    experiment: File = None,
    scheme: Schemes = None,
    scale: Scale = None,
    out: Out = DEFAULT_OUT,
    pcap: Pcap = False,
    workers: Workers = 1,
    again: Again = False,
    *,
    view: View,
) -> None:
    """Compare schemes: a table, a figure, OUT/results.json and a folder OUT/CASE/SCHEME for each run.

    Without --scheme: those of EXPERIMENT, else ecmp, letflow and flowcut. Ratios are against the first.

    With --fault every scheme runs twice: in a healthy network, then with the faults. A scheme that works over
    one transport only keeps that, whatever --transport says. With --seed 1..10 every scheme runs ten times on
    the same ten traffics: means with their 95 % intervals, and ratios seed by seed. In virtual time, what an
    earlier call has finished is not run again.
    """
    from tailrace.cli.experiment_command import ResultOutput, run_several
    from tailrace.experiments.plan.spec_list import split_schemes

    names = split_schemes(",".join(scheme)) if scheme else None
    output = ResultOutput(out, view, pcap)
    run_several(experiment, names, output, values=values, scale=scale, workers=workers, again=again)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
