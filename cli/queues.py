# SPDX-License-Identifier: Apache-2.0
"""`tailrace queues`: bytes that wait at each port."""

from __future__ import annotations

import typer

from cli.options import LookOptions, SwitchNames, with_look


@with_look
def queues(*, switches: SwitchNames = None, look: LookOptions) -> None:
    """Show the queues of every port. The program answers by packets, so BMv2 shows them too.

    tailrace queues --watch 1 --where 'egress_queue_bytes > 10KiB'
    """
    from cli.look import show
    from cli.network import Network, each
    from controller.inspect.listing import Listing, merge
    from controller.inspect.node import Node
    from controller.inspect.queues import COLUMNS, read_queues

    def read(network: Network) -> Listing:
        def one(node: Node) -> Listing:
            with network.asker(node) as asker:
                return read_queues(node, asker)

        return merge("queues", COLUMNS, each(network.select(switches or ()), one))

    show(look, read)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("queues", rich_help_panel="Look")(queues)
