# SPDX-License-Identifier: Apache-2.0
"""`tailrace resources`: what compiled programs ask of a switch."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.options import Plugin, View, with_view


@with_view
def resources(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PROGRAM", help="None: all.", show_default=False)
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(metavar="PROGRAM", help="Show what they have beyond this one.", show_default=False),
    ] = None,
    plugin: Plugin = None,
    *,
    view: View,
) -> None:
    """Count tables, registers, and the most that one packet takes on its way, of compiled programs.

    tailrace resources rlb_presto --over presto
    """
    from tailrace.cli.explain.resources_table import listing
    from tailrace.cli.output import show
    from tailrace.spec.plugins import use

    use(plugin or ())
    show(listing(names or (), over), view)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("resources", rich_help_panel="Explain")(resources)
