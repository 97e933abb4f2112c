# SPDX-License-Identifier: Apache-2.0
"""`tailrace topology`: what a topology spec means."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from tailrace.cli.complete import complete_specs
from tailrace.cli.options import Plugin, View, with_view


class TopologyPart(str, enum.Enum):
    """What --show takes."""

    ALL = "all"
    SWITCHES = "switches"
    HOSTS = "hosts"
    LINKS = "links"


@with_view
def topology(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="leaf-spine:leaves=2,spines=4,hosts=8 or FILE.json, for example.",
            autocompletion=complete_specs("topology", ".json"),
        ),
    ],
    part: Annotated[TopologyPart, typer.Option("--show", help="Which part.")] = TopologyPart.ALL,
    plugin: Plugin = None,
    *,
    view: View,
) -> None:
    """Show the switches, hosts, links and addresses of a topology.

    tailrace topology leaf-spine:leaves=2,spines=4,hosts=2 --show links
    """
    from tailrace.cli.explain.topology_text import show
    from tailrace.spec.plugins import use
    from tailrace.topology import parse_topology

    use(plugin or ())
    topology = parse_topology(spec)
    parts = [
        item for item in TopologyPart if item is not TopologyPart.ALL and part in {TopologyPart.ALL, item}
    ]
    show(topology, [item.value for item in parts], view)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("topology", rich_help_panel="Explain")(topology)
