# SPDX-License-Identifier: Apache-2.0
"""`tailrace resources`: the resources that compiled programs use in a switch."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    argument("names", nargs="*", metavar="PROGRAM", help="Default: all."),
    argument("--over", metavar="PROGRAM", help="Subtract the numbers of this program."),
    PLUGIN,
    view_options("cli.explain.resources_table"),
)
def resources(args: Namespace) -> None:
    """Count tables and registers of compiled programs, and the most work that one packet can cause.

    tailrace resources rlb_presto --over presto
    """
    from tailrace.cli.explain.resources_table import listing
    from tailrace.cli.output import show
    from tailrace.spec.plugins import use

    use(args.plugin or ())
    show(listing(args.names, args.over), view_of(args))
