# SPDX-License-Identifier: Apache-2.0
"""`tailrace results`: finished runs that a repository keeps, by spec."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.experiment_options import STORE
from tailrace.cli.options import view_of, view_options


@command(
    argument(
        "filters",
        nargs="*",
        metavar="KEY=SPEC",
        help="such as scheme=flowcut topology=fat-tree:k=8 seed=1..3: runs with these specs, and others",
    ),
    flag("--over-seeds", help="one row for all seeds: the means of what each measured"),
    STORE,
    view_options("cli.results_command"),
)
def results(args: Namespace) -> None:
    """Show finished runs that were kept as lines of DIR/*.jsonl; with --json whole.

    tailrace results scheme=flowcut topology=fat-tree:k=8
    """
    from tailrace.cli.results_command import show_results

    show_results(args.filters, args.store, view_of(args), over_seeds=args.over_seeds)
