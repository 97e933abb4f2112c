# SPDX-License-Identifier: Apache-2.0
"""`tailrace groups`: members of groups."""

from __future__ import annotations

import typer

from tailrace.cli.options import InspectOptions, SwitchNames, with_inspect


@with_inspect
def groups(*, switches: SwitchNames = None, options: InspectOptions) -> None:
    """Show groups: ECMP, selectors, multicast and clone sessions, with their ports and who uses them.

    tailrace groups leaf1 --where 'kind == ecmp and ports == spine2'
    """
    from tailrace.cli.inspect.network import each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.groups import COLUMNS, read_groups
    from tailrace.tables.listing import merge

    show(options, lambda network: merge("groups", COLUMNS, each(network.select(switches or ()), read_groups)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("groups", rich_help_panel="Look")(groups)
