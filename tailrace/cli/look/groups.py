# SPDX-License-Identifier: Apache-2.0
"""`tailrace groups`: who is behind a group."""

from __future__ import annotations

import typer

from tailrace.cli.options import LookOptions, SwitchNames, with_look


@with_look
def groups(*, switches: SwitchNames = None, look: LookOptions) -> None:
    """Show groups: ECMP, selectors, multicast and clone sessions, with their ports and who uses them.

    tailrace groups leaf1 --where 'kind == ecmp and ports == spine2'
    """
    from tailrace.cli.look.look import show
    from tailrace.cli.look.network import each
    from tailrace.controller.inspect.groups import COLUMNS, read_groups
    from tailrace.controller.listing.listing import merge

    show(look, lambda network: merge("groups", COLUMNS, each(network.select(switches or ()), read_groups)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("groups", rich_help_panel="Look")(groups)
