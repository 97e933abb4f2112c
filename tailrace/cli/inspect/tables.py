# SPDX-License-Identifier: Apache-2.0
"""`tailrace tables`: entries of tables."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.options import inspect_options, switch_names


@command(switch_names("table"), *inspect_options("controller.inspect.tables"))
def tables(args: Namespace) -> None:
    """Show table entries and default actions, with names and typed values.

    tailrace tables leaf1 ipv4_routes --where 'dst has 10.0.1.2'
    tailrace tables --address s1=127.0.0.1:50051 --topology topology.json --where 'entry != default'
    """
    from tailrace.cli.inspect.network import InspectedNetwork, read_named
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.tables import COLUMNS, read_tables
    from tailrace.tables.listing import Listing, merge

    def read(network: InspectedNetwork) -> Listing:
        return merge("tables", COLUMNS, read_named(network, args.switches, "table", read_tables))

    show(args, read)
