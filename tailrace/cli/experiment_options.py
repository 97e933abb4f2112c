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
            help="leaf-spine:…, fat-tree:k=4, dragonfly:…, slim-fly:… or FILE",
            complete=complete_specs("topology", files=True),
        ),
        argument(
            "--workload",
            metavar="SPEC",
            help="permutation:…, alltoall:…, incast:degree=8, random:flows=100, … or FILE",
            complete=complete_specs("workload", files=True),
        ),
        argument("--flows", metavar="N", type=int, help="number of flows, if the workload does not set it"),
        argument(
            "--target",
            metavar="NAME",
            help="auto, bmv2, native or virtual",
            complete=one_of("auto", "bmv2", "native", "virtual"),
        ),
        argument(
            "--seed",
            metavar="N",
            help="seed of all random choices, or several, such as 1..10 or 1,3,5, for means over them",
        ),
        argument(
            "--fault",
            metavar="SPEC",
            action="append",
            help="link-slow:…, link-down:…, drop:rate=0.01, ack-loss:…; may be repeated; `none` removes the "
            "file's faults",
            complete=complete_specs("fault"),
        ),
        argument(
            "--time-scale",
            metavar="X",
            type=float,
            help="slow-down: factor by which rates are divided and times multiplied (default: by target)",
        ),
        argument(
            "--transport",
            metavar="SPEC",
            help="gbn (go-back-N), sr (selective repeat), dctcp, dcqcn, mp-rdma or tcp",
            complete=complete_names("transport"),
        ),
        argument(
            "--window",
            metavar="SIZE",
            help="maximum of unacknowledged bytes of a flow, such as 64KiB or 1.5BDP",
        ),
        argument("--mtu", metavar="SIZE", help="payload of a full packet, such as 2KiB"),
        argument(
            "--reorder",
            metavar="N",
            type=int,
            help="number of later packets after which selective repeat considers a missing packet lost",
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
            help="in virtual time: ideal (notified of all failures), or real (that of real-time runs)",
            complete=one_of("ideal", "real"),
        ),
        argument(
            "--sample",
            metavar="TIME",
            help="interval of queue samples for the report, such as 10us",
        ),
        argument(
            "--follow",
            metavar="N",
            action="append",
            type=int,
            help="id of a flow whose path is recorded; may be repeated",
        ),
        argument(
            "--record",
            metavar="events|packets",
            help="record for `tailrace view`: events, or packets (every frame on every link)",
            complete=one_of("events", "packets"),
        ),
        argument(
            "--gaps", action=BooleanOptionalAction, help="measure the gaps between data packets of a flow"
        ),
    ),
)
"""Options that are also keys of an experiment file."""

KEYS = tuple(option.names[0].removeprefix("--").replace("-", "_") for option in EXPERIMENT.options)
"""The keys of an experiment file, except those of schemes."""

OUT = argument(
    "--out",
    metavar="DIR",
    type=Path,
    default=Path("out"),
    help="folder for the results; those of an earlier command in it are moved to DIR/earlier",
)
SCHEMES = argument(
    "--scheme",
    metavar="SPEC",
    action="append",
    help="schemes with their options, such as ecmp, letflow or flowcut:variant=nic; may be repeated, or be a "
    "list separated by commas",
    complete=complete_specs("scheme"),
)
PROGRAM = argument(
    "--program",
    metavar="FILE.json",
    help="a compiled P4 program of your own, in place of --scheme: short for --scheme program:json=FILE.json",
)
P4INFO = argument("--p4info", metavar="FILE", help="P4Info of --program, if it is not beside it")
ENTRIES = argument(
    "--entries",
    metavar="FILE|DIR",
    help="entries of --program: a file for all switches, or a folder with s1-runtime.json, "
    "s1-commands.txt, …",
)
PCAP = flag("--pcap", help="capture every link to OUT/pcap")
SCALE = argument(
    "--scale",
    metavar="NAME",
    help="scale of the experiment that the file defines: small or paper",
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
    "--workers", metavar="N", type=number(int, 1), default=1, help="number of parallel processes"
)
CLUSTER = argument(
    "--cluster", metavar="ADDRESS", help="run on the Dask cluster whose scheduler has this address"
)
AGAIN = flag("--again", help="repeat runs that an earlier call has finished")
STORE = argument("--store", metavar="DIR", type=Path, help="folder of stored runs, one row of a file per run")

PAGE = "report.html"
"""The page that `tailrace report` writes into a folder of results."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The values that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def scheme_option(args: Namespace) -> str | None:
    """The scheme that --scheme names, or --program with its files.

    Raises:
        SpecError: both are given, or files without a program.
    """
    files = given({"json": args.program, "p4info": args.p4info, "entries": args.entries})
    scheme: str | None = args.scheme
    if not files:
        return scheme
    from tailrace.spec import SpecError

    if scheme is not None:
        raise SpecError("--scheme and --program do not go together")
    for value in files.values():
        if any(character in value for character in ",:="):
            raise SpecError(
                f"--program: a path must not contain a comma, a colon or '=', found {value[:100]!r}"
            )
    return "program:" + ",".join(f"{key}={value}" for key, value in files.items())


def values_of(args: Namespace) -> dict[str, Any]:
    """The values of EXPERIMENT that the user gave, by key of an experiment file; loads the plug-ins first."""
    if args.plugin:
        from tailrace.spec.plugins import use

        use(args.plugin)
    return given({key: getattr(args, key) for key in KEYS})
