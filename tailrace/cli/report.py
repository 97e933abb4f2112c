# SPDX-License-Identifier: Apache-2.0
"""`tailrace report`: one self-contained HTML page of a folder of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tailrace.cli.experiment_options import DEFAULT_OUT, PAGE


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="folder of run, compare, sweep or paper")
    ] = DEFAULT_OUT,
    out: Annotated[Path | None, typer.Option(help="file to write", show_default=f"DIR/{PAGE}")] = None,
    title: Annotated[str | None, typer.Option(help="title of the page", show_default=False)] = None,
) -> None:
    """Make one HTML page of all results below a folder: figures, tables, claims, seeds and commands.

    The page holds everything that it shows, and opens without a network.
    """
    from tailrace.cli.start.drawing import draw_alone

    draw_alone()
    from tailrace.cli.report_command import write_report

    sys.stdout.write(f"{write_report(folder, out, title)}\n")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)
