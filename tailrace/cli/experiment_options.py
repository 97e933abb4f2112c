# SPDX-License-Identifier: Apache-2.0
"""Options of experiments, declared once for `tailrace run`, `compare`, `sweep` and `schemes`."""

from __future__ import annotations

from argparse import BooleanOptionalAction, Namespace
from pathlib import Path
from typing import Any

from tailrace.cli.arguments import OptionGroup, argument, flag, number
from tailrace.cli.complete import complete_experiment, complete_names, complete_specs, one_of

EXPERIMENT = OptionGroup(
    "What to run",
    (
        argument(
            "--topology",
            metavar="SPEC",
            help="leaf-spine:…, fat-tree:k=4, dragonfly:…, slim-fly:… or FILE.json",
            complete=complete_specs("topology", ".json"),
        ),
        argument(
            "--workload",
            metavar="SPEC",
            help="permutation:…, alltoall:…, incast:degree=8, random:flows=100, … or FILE.csv",
            complete=complete_specs("workload", ".csv"),
        ),
        argument("--flows", metavar="N", type=int, help="number of flows, where the workload leaves it open"),
        argument(
            "--target",
            metavar="NAME",
            help="auto, bmv2, native or virtual",
            complete=one_of("auto", "bmv2", "native", "virtual"),
        ),
        argument(
            "--seed",
            metavar="N",
            help="decides everything random; of several, such as 1..10 or 1,3,5, there are means",
        ),
        argument(
            "--fault",
            metavar="SPEC",
            action="append",
            help="link-slow:…, link-down:…, drop:rate=0.01, ack-loss:…; may be repeated; none: none of the "
            "file's",
            complete=complete_specs("fault"),
        ),
        argument(
            "--time-scale",
            metavar="X",
            type=float,
            help="how many times slower than stated everything runs; by target without it",
        ),
        argument(
            "--transport",
            metavar="SPEC",
            help="gbn (go-back-N), sr (selective repeat), dctcp, dcqcn, mp-rdma or tcp",
            complete=complete_names("transport"),
        ),
        argument("--window", metavar="SIZE", help="unacknowledged bytes of a flow, such as 64KiB or 1.5BDP"),
        argument("--mtu", metavar="SIZE", help="payload of a full packet, such as 2KiB"),
        argument(
            "--reorder",
            metavar="N",
            type=int,
            help="packets after which selective repeat takes a late one for lost",
        ),
        argument(
            "--pfc",
            metavar="SPEC",
            help="priority flow control: default, or "
            "xoff=256KiB,xon=200KiB,headroom=64KiB,buffer=9MB,alpha=1/8,channels=auto",
        ),
        argument(
            "--controller",
            metavar="NAME",
            help="in virtual time: ideal (notified of all failures), or real: the one of real time",
            complete=one_of("ideal", "real"),
        ),
        argument("--sample", metavar="TIME", help="look at queues so often, such as 10us; for the report"),
        argument(
            "--follow",
            metavar="N",
            action="append",
            type=int,
            help="number of a flow whose path is recorded; may be repeated",
        ),
        argument(
            "--gaps", action=BooleanOptionalAction, help="measure the gaps between data packets of a flow"
        ),
    ),
)
"""Options that are keys of an experiment file, too."""

KEYS = tuple(option.names[0].removeprefix("--").replace("-", "_") for option in EXPERIMENT.options)
"""Of an experiment file: all but those of schemes."""

OUT = argument("--out", metavar="DIR", type=Path, default=Path("out"), help="folder for the results")
SCHEMES = argument(
    "--scheme",
    metavar="SPEC",
    action="append",
    help="ecmp, letflow, flowcut:variant=nic, …: schemes with their options; may be repeated, or several "
    "with commas between them",
    complete=complete_specs("scheme"),
)
PCAP = flag("--pcap", help="capture every link to OUT/pcap")
SCALE = argument(
    "--scale",
    metavar="NAME",
    help="small or paper: a size that the file knows",
    complete=one_of("small", "paper"),
)
FILE = argument(
    "experiment",
    nargs="?",
    type=Path,
    metavar="EXPERIMENT",
    help="experiment file (TOML), or a preset: basic, common, hf2t, rlb, spritz",
    complete=complete_experiment,
)
WORKERS = argument(
    "--workers", metavar="N", type=number(int, 1), default=1, help="so many processes at a time"
)
CLUSTER = argument("--cluster", metavar="ADDRESS", help="run on the Dask cluster of this scheduler instead")
AGAIN = flag("--again", help="also run what an earlier call has finished")
STORE = argument("--store", metavar="DIR", type=Path, help="folder of finished runs, a line each")

PAGE = "report.html"
"""What `tailrace report` makes of a folder of results, in that folder."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Those values that are there."""
    return {key: value for key, value in values.items() if value is not None}


def values_of(args: Namespace) -> dict[str, Any]:
    """The values of EXPERIMENT that the user gave, by the keys of an experiment file; loads plug-ins."""
    if args.plugin:
        from tailrace.spec.plugins import use

        use(args.plugin)
    return given({key: getattr(args, key) for key in KEYS})
