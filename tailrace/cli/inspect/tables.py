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
    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.tables import COLUMNS, read_tables

    show_named(args, "table", COLUMNS, read_tables)
