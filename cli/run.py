# SPDX-License-Identifier: Apache-2.0
"""`tailrace run`: one experiment, from words or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from experiments.experiment import Experiment

# Shared with `tailrace compare`, so that both explain the same words in the same way.
Topology = Annotated[
    str | None, typer.Option(help="leaf-spine:…, fat-tree:k=4, dragonfly:…, slim-fly:… or FILE.json")
]
Workload = Annotated[
    str | None, typer.Option(help="permutation:…, alltoall:…, incast:degree=8, random:flows=100 or FILE.csv")
]
Flows = Annotated[int | None, typer.Option(help="number of flows, where the workload leaves it open")]
Target = Annotated[str | None, typer.Option(help="auto, bmv2, native or virtual")]
Seed = Annotated[int | None, typer.Option(help="decides everything random")]
Fault = Annotated[
    list[str] | None,
    typer.Option(help="link-slow:…, link-down:…, drop:rate=0.01 or ack-loss:rate=0.01; may be repeated"),
]
TimeScale = Annotated[
    float | None,
    typer.Option(help="how many times slower than stated everything runs", show_default="by target"),
]
Transport = Annotated[str | None, typer.Option(help="gbn (go-back-N) or sr (selective repeat)")]
Window = Annotated[str | None, typer.Option(help="unacknowledged bytes of a flow, such as 64KiB")]
Out = Annotated[Path, typer.Option(help="folder for the results")]
Json = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]
Pcap = Annotated[bool, typer.Option("--pcap", help="capture every link to OUT/pcap")]

DEFAULT_OUT = Path("out")


def given(**values: Any) -> dict[str, Any]:
    """The options that the user gave."""
    return {key: value for key, value in values.items() if value not in (None, [])}


def run(
    experiment: Annotated[
        Path | None, typer.Argument(help="experiment file (TOML)", metavar="EXPERIMENT.toml")
    ] = None,
    scheme: Annotated[str | None, typer.Option(help="ecmp, spray, letflow or flowcut, with options")] = None,
    variant: Annotated[str | None, typer.Option(help="of flowcut: full, ingress or nic")] = None,
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
    cli: Annotated[bool, typer.Option("--cli", help="bring the fabric up and show Mininet's prompt")] = False,
) -> None:
    """Run one experiment: OUT/summary.json, OUT/flows.parquet and a table.

    Options change what EXPERIMENT.toml says.
    """
    values = given(
        scheme=scheme,
        variant=variant,
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
    from experiments.command import Output, open_prompt, run_one

    chosen = _experiment(experiment, values)
    if cli:
        open_prompt(chosen)
    else:
        run_one(chosen, Output(out, json, pcap))


def _experiment(path: Path | None, values: dict[str, Any]) -> Experiment:
    """What the file and the options say together."""
    from experiments.experiment import make
    from experiments.toml_file import read_experiment

    return make(values, None if path is None else read_experiment(path))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
