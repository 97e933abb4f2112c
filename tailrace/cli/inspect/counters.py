# SPDX-License-Identifier: Apache-2.0
"""`tailrace counters`: counters and their rates."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command, flag
from tailrace.cli.options import inspect_options, switch_names


@command(
    switch_names("counter"),
    flag("--all", help="Also show cells that are 0."),
    *inspect_options("controller.inspect.counters"),
)
def counters(args: Namespace) -> None:
    """Show counters; with --watch also their rates per second.

    tailrace counters drops
    tailrace counters leaf1 port_tx --watch 1
    """
    from functools import partial

    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.counters import COLUMNS, read_counters

    nothing = "all counters are 0; --all shows them"
    show_named(args, "counter", COLUMNS, partial(read_counters, zeros=args.all), nothing)
