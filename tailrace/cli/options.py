# SPDX-License-Identifier: Apache-2.0
"""Arguments that many commands share, declared once, and the values computed from them.

Nothing that loads slowly is imported here, so that `tailrace COMMAND --help` and completion are fast.
"""

from __future__ import annotations

import enum
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from tailrace.cli.arguments import CommandArgument, OptionGroup, argument, flag, number
from tailrace.cli.complete import complete_column, complete_columns, complete_switch


class OutputFormat(str, enum.Enum):
    """The output formats of -o."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


SWITCH = argument("switch", metavar="SWITCH", help="Name of the switch.", complete=complete_switch)


def switch_names(kind: str = "") -> CommandArgument:
    """The argument that names switches, and P4 objects of this kind (table, counter, register)."""
    return argument(
        "switches",
        nargs="*",
        metavar=f"SWITCH|{kind.upper()}" if kind else "SWITCH",
        help="Names of switches or patterns such as 'leaf*' (default: all)."
        + (f" An argument that matches no switch is the name of a {kind}." if kind else ""),
        complete=complete_switch,
    )


MOST_ELECTION_ID = (1 << 64) - 1

ELECTION_ID = argument(
    "--election-id",
    metavar="N",
    type=number(int, 1, MOST_ELECTION_ID),
    default=1,
    help="P4Runtime election id; only the controller with the highest id may write.",
)
PRIMARY_ELECTION_ID = argument(
    "--election-id",
    metavar="N",
    type=number(int, 1, MOST_ELECTION_ID),
    help="Election id of the primary controller, if there is one (default: that of `tailrace run`).",
)
PLUGIN = argument(
    "--plugin",
    metavar="DIR",
    action="append",
    type=Path,
    help="Python file, or DIR of files, with further schemes, topologies, workloads or metrics; "
    "may be repeated; also as TAILRACE_PLUGINS=DIR:DIR.",
)


# ---- how listings are shown ----


@dataclass(frozen=True, slots=True)
class View:
    """How listings are shown: output format, columns (empty: all), and the column to sort by."""

    format: OutputFormat = OutputFormat.TABLE
    columns: tuple[str, ...] = ()
    sort_by: str | None = None


def view_options(module: str | None) -> OptionGroup:
    """The options that `view_of` reads; names of columns are completed from the COLUMNS of a module."""
    return OptionGroup(
        "How to show it",
        (
            argument(
                *("-o", "--output"),
                choices=[each.value for each in OutputFormat],
                metavar="FORMAT",
                default=OutputFormat.TABLE.value,
                help="table, json, jsonl, csv, or wide (a table with all columns, however wide).",
            ),
            flag("--json", help="The same as -o json."),
            argument(
                "--columns",
                metavar="NAME,NAME",
                help="Columns to show, in this order.",
                complete=complete_columns(module) if module else None,
            ),
            argument(
                "--sort-by",
                metavar="NAME",
                help="Column to sort by; -NAME: in descending order.",
                complete=complete_column(module) if module else None,
            ),
        ),
    )


def view_of(args: Namespace) -> View:
    """The view that the options of `view_options` ask for.

    Raises:
        SpecError: --json and another output format.
    """
    from tailrace.spec import SpecError

    output = OutputFormat(args.output)
    if args.json and output not in (OutputFormat.TABLE, OutputFormat.JSON):
        raise SpecError(f"--json and -o {output.value} contradict each other; give one")
    names = [name.strip() for name in (args.columns or "").split(",")]
    return View(OutputFormat.JSON if args.json else output, tuple(filter(None, names)), args.sort_by)


# ---- where the switches are ----


RUN = argument(
    "--run",
    metavar="FILE",
    type=Path,
    help="Run file of a running network (default: the latest of this user).",
)
SOURCE = OptionGroup(
    "Where the switches are",
    (
        RUN,
        argument(
            "--address",
            metavar="[NAME=]HOST:PORT[@ID]",
            action="append",
            help="Address of a P4Runtime server with any program, instead of --run; may be repeated.",
        ),
        argument("--device-id", metavar="N", type=int, default=0, help="P4Runtime device id with --address."),
        argument(
            "--p4info", metavar="FILE", type=Path, help="P4Info of the program (default: from the switch)."
        ),
        argument(
            "--topology",
            metavar="SPEC",
            help="Topology that names the neighbours: leaf-spine:… or FILE (default: the run file's).",
        ),
        argument("--ca", metavar="PEM", type=Path, help="Use TLS, and trust this certificate authority."),
        argument("--cert", metavar="PEM", type=Path, help="Use TLS with this client certificate."),
        argument("--key", metavar="PEM", type=Path, help="Private key of --cert."),
    ),
)


def inspect_options(module: str) -> tuple[OptionGroup, OptionGroup, OptionGroup]:
    """The options of commands that show listings of switches, with the columns COLUMNS of a module."""
    what = OptionGroup(
        "What to show",
        (
            argument(
                "--where",
                metavar="EXPR",
                help='Only rows that match, such as "port == spine1 and dst in 10.0.0.0/8".',
            ),
            argument(
                "--watch",
                metavar="SEC",
                type=number(float, 0.01, 86400),
                help="Repeat every SEC seconds, until Ctrl-C; highlights changes, adds rates to counters.",
            ),
            argument("--rounds", metavar="N", type=number(int, 1), help="Stop --watch after N readings."),
        ),
    )
    return what, view_options(module), SOURCE
