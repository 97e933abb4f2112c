# SPDX-License-Identifier: Apache-2.0
"""`tailrace results`: finished runs that a repository keeps, by spec."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.experiment_options import StoreFolder
from tailrace.cli.options import View, with_view


@with_view
def results(
    filters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=SPEC",
            help="such as scheme=flowcut topology=fat-tree:k=8 seed=1..3: runs with these specs, and others",
            show_default=False,
        ),
    ] = None,
    over_seeds: Annotated[
        bool, typer.Option("--over-seeds", help="one row for all seeds: the means of what each measured")
    ] = False,
    store: StoreFolder = None,
    *,
    view: View,
) -> None:
    """Show finished runs that were kept as lines of DIR/*.jsonl; with --json whole.

    tailrace results scheme=flowcut topology=fat-tree:k=8
    """
    from tailrace.cli.store.results_command import show_results

    show_results(filters or (), store, view, over_seeds=over_seeds)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)
