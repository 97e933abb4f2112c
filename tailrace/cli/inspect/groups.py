# SPDX-License-Identifier: Apache-2.0
"""`tailrace groups`: members of groups."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command
from tailrace.cli.options import inspect_options, switch_names


@command(switch_names(), *inspect_options("controller.inspect.groups"))
def groups(args: Namespace) -> None:
    """Show groups: ECMP, selectors, multicast and clone sessions, with ports and the entries that use them.

    tailrace groups leaf1 --where 'kind == ecmp and ports == spine2'
    """
    from tailrace.cli.inspect.network import each
    from tailrace.cli.inspect.show import show
    from tailrace.controller.inspect.groups import COLUMNS, read_groups
    from tailrace.tables.listing import merge

    show(args, lambda network: merge("groups", COLUMNS, each(network.select(args.switches), read_groups)))
