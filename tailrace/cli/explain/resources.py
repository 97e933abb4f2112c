# SPDX-License-Identifier: Apache-2.0
"""`tailrace resources`: what compiled programs ask of a switch."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    argument("names", nargs="*", metavar="PROGRAM", help="None: all."),
    argument("--over", metavar="PROGRAM", help="Show what they have beyond this one."),
    PLUGIN,
    view_options("cli.explain.resources_table"),
)
def resources(args: Namespace) -> None:
    """Count tables, registers, and the most that one packet takes on its way, of compiled programs.

    tailrace resources rlb_presto --over presto
    """
    from tailrace.cli.explain.resources_table import listing
    from tailrace.cli.output import show
    from tailrace.spec.plugins import use

    use(args.plugin or ())
    show(listing(args.names, args.over), view_of(args))
