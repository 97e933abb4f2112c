# SPDX-License-Identifier: Apache-2.0
"""`tailrace results`: stored results of finished runs, and of the papers' figures and claims."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.experiment_options import STORE
from tailrace.cli.options import view_options


@command(
    argument(
        "filters",
        nargs="*",
        metavar="KEY=SPEC|FIGURE|claims",
        help="only runs with these specs, such as scheme=flowcut topology=fat-tree:k=8 seed=1..3; or figures "
        "such as rlb_fig12, with tables and claims; or `claims`: those of all figures, or of those given",
    ),
    argument("--where", metavar="EXPR", help='only rows that match, such as "verdict ~ beyond"'),
    flag("--over-seeds", help="combine seeds: one row with the means of their metrics"),
    STORE,
    view_options("cli.results_command"),
)
def results(args: Namespace) -> None:
    """Show finished runs that are stored as rows of DIR/*.parquet, or figures and claims of the pages there.

    tailrace results scheme=flowcut topology=fat-tree:k=8
    tailrace results claims rlb --where "verdict ~ beyond" --sort-by figure

    --json shows all that is stored of runs.
    """
    from tailrace.cli.results_command import show_results

    show_results(args)
