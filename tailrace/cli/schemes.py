# SPDX-License-Identifier: Apache-2.0
"""`tailrace schemes`: schemes, their variants and parameters."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tailrace.cli.options import Form, Plugin


def schemes(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SCHEME", help="None: all.", show_default=False)
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
    output: Annotated[Form, typer.Option("-o", "--output", help="How to write it.")] = Form.TABLE,
) -> None:
    """List schemes with their parameters, units and defaults, as they are written on the command line.

    tailrace schemes flowcut --topology leaf-spine:leaves=2,spines=4,hosts=8
    """
    from tailrace.cli.output import render
    from tailrace.cli.scheme_text import listing
    from tailrace.topology import parse_topology
    from tailrace.words.plugins import use

    use(plugin or ())
    found = None if topology is None else parse_topology(topology)
    sys.stdout.write(render(listing(names or (), found), output))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("schemes", rich_help_panel="Explain")(schemes)
