# SPDX-License-Identifier: Apache-2.0
"""`tailrace schemes`: schemes, their variants and parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.complete import complete_declared
from tailrace.cli.options import Plugin, View, with_view


@with_view
def schemes(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEME", help="None: all.", show_default=False, autocompletion=complete_declared
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="WORDS",
            help="Also show the defaults that follow from this topology.",
            show_default=False,
        ),
    ] = None,
    plugin: Plugin = None,
    *,
    view: View,
) -> None:
    """List schemes with their parameters, units and defaults, as they are written on the command line.

    tailrace schemes flowcut --topology leaf-spine:leaves=2,spines=4,hosts=8
    """
    from tailrace.cli.explain.scheme_text import listing
    from tailrace.cli.output import show
    from tailrace.topology import parse_topology
    from tailrace.words.plugins import use

    use(plugin or ())
    found = None if topology is None else parse_topology(topology)
    show(listing(names or (), found), view)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("schemes", rich_help_panel="Explain")(schemes)
