# SPDX-License-Identifier: Apache-2.0
"""`tailrace tables`: entries of tables."""

from __future__ import annotations

import typer

from tailrace.cli.options import LookOptions, SwitchNames, with_look


@with_look
def tables(*, switches: SwitchNames = None, look: LookOptions) -> None:
    """Show table entries and default actions, with names and typed values.

    tailrace tables leaf1 --where 'table == ipv4_routes and dst has 10.0.1.2'

    tailrace tables --address s1=127.0.0.1:50051 --topology topology.json --where 'entry != default'
    """
    from tailrace.cli.look.look import show
    from tailrace.cli.look.network import each
    from tailrace.controller.inspect.tables import COLUMNS, read_tables
    from tailrace.controller.listing.listing import merge

    show(look, lambda network: merge("tables", COLUMNS, each(network.select(switches or ()), read_tables)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tables", rich_help_panel="Look")(tables)
