# SPDX-License-Identifier: Apache-2.0
"""`tailrace counters`: counters and their rates."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.options import CounterNames, InspectOptions, with_inspect


@with_inspect
def counters(
    *,
    switches: CounterNames = None,
    zeros: Annotated[bool, typer.Option("--all", help="Also cells that never counted.")] = False,
    options: InspectOptions,
) -> None:
    """Show counters; with --watch also their growth a second.

    tailrace counters drops

    tailrace counters leaf1 port_tx --watch 1
    """
    from functools import partial

    from tailrace.cli.inspect.network import InspectedNetwork, read_named
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.counters import COLUMNS, read_counters
    from tailrace.tables.listing import Listing, merge

    read = partial(read_counters, zeros=zeros)

    def every(network: InspectedNetwork) -> Listing:
        nothing = "no counter has counted anything; --all shows all of them"
        return merge(
            "counters", COLUMNS, read_named(network, switches or (), "counter", read), nothing=nothing
        )

    show(options, every)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("counters", rich_help_panel="Look")(counters)
