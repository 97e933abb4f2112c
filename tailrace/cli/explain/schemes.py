# SPDX-License-Identifier: Apache-2.0
"""`tailrace schemes`: schemes, their variants and parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli.complete import complete_declared
from tailrace.cli.experiment_options import with_experiment
from tailrace.cli.options import View, with_view


@with_view
@with_experiment
def schemes(
    values: dict[str, Any],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEME", help="None: all.", show_default=False, autocompletion=complete_declared
        ),
    ] = None,
    *,
    view: View,
) -> None:
    """List schemes with their parameters, units and defaults, as they are written on the command line.

    With --topology or other options of a run: what a run with these has, in virtual time where no --target is
    given, and what bounds its queues.

    tailrace schemes flowcut --topology leaf-spine:leaves=2,spines=4,hosts=8 --transport dcqcn
    """
    from tailrace.cli.explain.scheme_text import listing
    from tailrace.cli.output import show

    show(listing(names or (), values=values), view)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("schemes", rich_help_panel="Explain")(schemes)
