# SPDX-License-Identifier: Apache-2.0
"""`tailrace registers`: register cells, if the target supports reading them."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import command, flag
from tailrace.cli.options import inspect_options, switch_names


@command(
    switch_names("register"),
    flag("--all", help="Also show cells that are 0."),
    *inspect_options("controller.inspect.registers"),
)
def registers(args: Namespace) -> None:
    """Show registers. BMv2's P4Runtime server does not support them: use `flows` and `queues` there.

    tailrace registers leaf1 rtt_min_ticks
    """
    from functools import partial

    from tailrace.cli.inspect.show import show_named
    from tailrace.controller.inspect.registers import COLUMNS, read_registers

    nothing = "all registers are 0; --all shows them"
    show_named(args, "register", COLUMNS, partial(read_registers, zeros=args.all), nothing)
