# SPDX-License-Identifier: Apache-2.0
"""`tailrace report`: one self-contained HTML page of a folder of results."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command
from tailrace.cli.experiment_options import OUT, PAGE


@command(
    argument(
        "folder",
        nargs="?",
        metavar="DIR",
        type=Path,
        default=OUT.settings["default"],
        help="folder of run, compare, sweep or paper",
    ),
    argument("--out", metavar="FILE", type=Path, help=f"file to write [default: DIR/{PAGE}]"),
    argument("--title", metavar="TEXT", help="title of the page"),
)
def report(args: Namespace) -> None:
    """Make one HTML page of all results below a folder: figures, tables, claims, seeds and commands.

    The page holds everything that it shows, and opens without a network.
    """
    from tailrace.cli.drawing import draw_alone

    draw_alone()
    from tailrace.cli.report_command import write_report

    sys.stdout.write(f"{write_report(args.folder, args.out, args.title)}\n")
