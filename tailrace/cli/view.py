# SPDX-License-Identifier: Apache-2.0
"""`tailrace view`: a page that replays a run."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command
from tailrace.cli.options import PLUGIN

_PAGE = "view.html"


@command(
    argument(
        "folder",
        nargs="+",
        metavar="DIR",
        type=Path,
        help="folders of runs, or of a case or comparison with two",
    ),
    argument("--out", metavar="FILE", type=Path, help=f"file to write [default: DIR/{_PAGE}]"),
    argument(
        "--state",
        metavar="TIME,...",
        default="",
        help="virtual times, such as 100us,200us, of tables of the switches, for which the run is repeated",
    ),
    PLUGIN,
)
def view(args: Namespace) -> None:
    """Make one HTML page that replays a run, or two runs of the same traffic beside each other.

    The page contains everything that it shows, and opens without a network. Runs need a record, which
    `tailrace run --record events --sample 5us` writes.
    """
    from tailrace.cli.figures import file_for
    from tailrace.report.collect import open_study
    from tailrace.results.result import SUMMARY
    from tailrace.results.results import RESULTS
    from tailrace.spec.plugins import use
    from tailrace.viewer.view import view

    use(args.plugin or ())
    results = []
    for folder in args.folder:
        # a case of a comparison has its runs in folders, and no file
        runs = [] if (folder / RESULTS).exists() else [path.parent for path in folder.glob(f"*/{SUMMARY}")]
        results += [result for run in sorted(runs) or [folder] for result in open_study(run).results]
    path = file_for(args.folder[0], args.out, _PAGE)
    view(*results, path=path, state=args.state.split(",") if args.state else (), progress=sys.stderr)
    sys.stdout.write(f"{path}\n")
