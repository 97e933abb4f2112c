# SPDX-License-Identifier: Apache-2.0
"""`tailrace results`: stored results of finished runs, chosen by spec."""

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
        help="only runs with these specs, such as scheme=flowcut topology=fat-tree:k=8 seed=1..3",
    ),
    flag("--over-seeds", help="combine seeds: one row with the means of their metrics"),
    STORE,
    view_options("cli.results_command"),
)
def results(args: Namespace) -> None:
    """Show finished runs that are stored as rows of DIR/*.parquet; --json shows all that is stored.

    tailrace results scheme=flowcut topology=fat-tree:k=8
    """
    from tailrace.cli.results_command import show_results

    show_results(args.filters, args.store, view_of(args), over_seeds=args.over_seeds)
