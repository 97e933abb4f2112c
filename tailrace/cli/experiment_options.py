# SPDX-License-Identifier: Apache-2.0
"""Options of experiments, declared once for `tailrace run`, `compare` and `sweep`.

`with_experiment` adds them to a command, which gets those that the user gave as one dictionary, by the keys
of an experiment file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tailrace.cli.complete import Completer, complete_experiment, complete_specs, complete_transport, one_of
from tailrace.cli.options import Plugin, with_signature

_PANEL = "What to run"


def _option(kind: Any, help_text: str, complete: Completer | None = None) -> Any:
    return Annotated[
        kind | None,
        typer.Option(help=help_text, rich_help_panel=_PANEL, show_default=False, autocompletion=complete),
    ]


EXPERIMENT: dict[str, Any] = {
    "topology": _option(
        str,
        "leaf-spine:…, fat-tree:k=4, dragonfly:…, slim-fly:… or FILE.json",
        complete_specs("topology", ".json"),
    ),
    "workload": _option(
        str,
        "permutation:…, alltoall:…, incast:degree=8, random:flows=100, … or FILE.csv",
        complete_specs("workload", ".csv"),
    ),
    "flows": _option(int, "number of flows, where the workload leaves it open"),
    "target": _option(str, "auto, bmv2, native or virtual", one_of("auto", "bmv2", "native", "virtual")),
    "seed": _option(str, "decides everything random; of several, such as 1..10 or 1,3,5, there are means"),
    "fault": _option(
        list[str],
        "link-slow:…, link-down:…, drop:rate=0.01, ack-loss:…; may be repeated; none: none of the file's",
        complete_specs("fault"),
    ),
    "time_scale": _option(float, "how many times slower than stated everything runs; by target without it"),
    "transport": _option(
        str,
        "gbn (go-back-N), sr (selective repeat), dctcp, dcqcn, mp-rdma or tcp",
        complete_transport,
    ),
    "window": _option(str, "unacknowledged bytes of a flow, such as 64KiB or 1.5BDP"),
    "mtu": _option(str, "payload of a full packet, such as 2KiB"),
    "reorder": _option(int, "packets after which selective repeat takes a late one for lost"),
    "pfc": _option(
        str,
        "priority flow control: default, or xoff=256KiB,xon=200KiB,headroom=64KiB,buffer=9MB,alpha=1/8,"
        "channels=auto",
    ),
    "controller": _option(
        str,
        "in virtual time: ideal (notified of all failures), or real: the one of real time",
        one_of("ideal", "real"),
    ),
    "sample": _option(str, "look at queues so often, such as 10us; for the report"),
    "follow": _option(list[int], "number of a flow whose path is recorded; may be repeated"),
    "gaps": _option(bool, "measure the gaps between data packets of a flow"),
}

"""Options by the keys of an experiment file; all keys but those of schemes."""

Out = Annotated[Path, typer.Option(help="folder for the results")]
Schemes = Annotated[
    list[str] | None,
    typer.Option(
        "--scheme",
        metavar="SPEC",
        help="ecmp, letflow, flowcut:variant=nic, …: schemes with their options; may be repeated, or several "
        "with commas between them",
        show_default=False,
        autocompletion=complete_specs("scheme"),
    ),
]
Pcap = Annotated[bool, typer.Option("--pcap", help="capture every link to OUT/pcap")]
Scale = Annotated[
    str | None,
    typer.Option(help="small or paper: a size that the file knows", autocompletion=one_of("small", "paper")),
]
File = Annotated[
    Path | None,
    typer.Argument(
        help="experiment file (TOML), or a preset: basic, common, hf2t, rlb, spritz",
        metavar="EXPERIMENT",
        autocompletion=complete_experiment,
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="so many processes at a time")]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="run on the Dask cluster of this scheduler instead")
]
Again = Annotated[bool, typer.Option("--again", help="also run what an earlier call has finished")]
StoreFolder = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="folder of finished runs, a line each", show_default=False),
]

DEFAULT_OUT = Path("out")
PAGE = "report.html"
"""What `tailrace report` makes of a folder of results, in that folder."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Those values that are there."""
    return {key: value for key, value in values.items() if value not in (None, [])}


def with_experiment(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that takes `values: dict[str, Any]` the options that say what to run."""

    @functools.wraps(command)
    def wrapper(**found: Any) -> None:
        plugins = found.pop("plugin")
        if plugins:
            from tailrace.spec.plugins import use

            use(plugins)
        values = given({name: found.pop(name) for name in EXPERIMENT})
        command(**found, values=values)

    return with_signature(wrapper, command, "values", {**EXPERIMENT, "plugin": Plugin})
