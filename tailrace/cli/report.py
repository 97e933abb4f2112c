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
        help="folder of results of run, compare, sweep or paper",
    ),
    argument("--out", metavar="FILE", type=Path, help=f"file to write [default: DIR/{PAGE}]"),
    argument("--title", metavar="TEXT", help="title of the page"),
)
def report(args: Namespace) -> None:
    """Make one HTML page of all results below a folder: figures, tables, claims, seeds and commands.

    The page contains everything that it shows, and opens without a network.
    """
    from tailrace.cli.drawing import draw_alone

    draw_alone()
    sys.stdout.write(f"{_write(args.folder, args.out, args.title)}\n")


def _write(folder: Path, out: Path | None, title: str | None) -> Path:
    """Makes the page, and returns its file; invalid result files are reported, and left out.

    Raises:
        SpecError: there are no results, or the page cannot be written.
    """
    from tailrace.cli.drawing import file_for
    from tailrace.report.collect import collect
    from tailrace.report.page import render
    from tailrace.spec import SpecError
    from tailrace.spec.atomic import write_file
    from tailrace.study.progress import Display

    collected = collect(folder)
    for problem in collected.problems:
        Display(sys.stderr).warn(problem)
    # names of files may contain bytes that are no valid text
    content = render(collected, title or f"Results in {folder}").encode(errors="backslashreplace")
    try:
        path = file_for(folder, out, PAGE)
        write_file(path, content)
    except OSError as error:
        raise SpecError(f"{out or folder / PAGE}: {error.strerror}") from error
    return path
