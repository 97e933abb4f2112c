# SPDX-License-Identifier: Apache-2.0
"""`tailrace registers`: register cells, where the target serves them."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.options import InspectOptions, RegisterNames, with_inspect


@with_inspect
def registers(
    *,
    switches: RegisterNames = None,
    zeros: Annotated[bool, typer.Option("--all", help="Also cells that hold 0.")] = False,
    options: InspectOptions,
) -> None:
    """Show registers. BMv2's P4Runtime server refuses them: use flows and queues there.

    tailrace registers leaf1 rtt_min_ticks
    """
    from functools import partial

    from tailrace.cli.inspect.network import InspectedNetwork, read_named
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.registers import COLUMNS, read_registers
    from tailrace.tables.listing import Listing, merge

    read = partial(read_registers, zeros=zeros)

    def every(network: InspectedNetwork) -> Listing:
        nothing = "all registers hold 0; --all shows all of them"
        return merge(
            "registers", COLUMNS, read_named(network, switches or (), "register", read), nothing=nothing
        )

    show(options, every)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("registers", rich_help_panel="Look")(registers)
