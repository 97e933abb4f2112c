# SPDX-License-Identifier: Apache-2.0
"""`tailrace tables`: entries of tables."""

from __future__ import annotations

import typer

from tailrace.cli.options import InspectOptions, SwitchNames, with_inspect


@with_inspect
def tables(*, switches: SwitchNames = None, options: InspectOptions) -> None:
    """Show table entries and default actions, with names and typed values.

    tailrace tables leaf1 --where 'table == ipv4_routes and dst has 10.0.1.2'

    tailrace tables --address s1=127.0.0.1:50051 --topology topology.json --where 'entry != default'
    """
    from tailrace.cli.inspect.network import each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.tables import COLUMNS, read_tables
    from tailrace.controller.listing.listing import merge

    show(options, lambda network: merge("tables", COLUMNS, each(network.select(switches or ()), read_tables)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tables", rich_help_panel="Look")(tables)
