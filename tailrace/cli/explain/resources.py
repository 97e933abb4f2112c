# SPDX-License-Identifier: Apache-2.0
"""`tailrace resources`: the resources that compiled programs use in a switch."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    argument("names", nargs="*", metavar="PROGRAM", help="Programs to list, or FILE.json (default: all)."),
    argument(
        "--over", metavar="PROGRAM", help="Program whose numbers are subtracted from those of the others."
    ),
    PLUGIN,
    view_options("cli.explain.counts"),
)
def resources(args: Namespace) -> None:
    """Count tables and registers of compiled programs, and the maximum work per packet.

    tailrace resources rlb_presto --over presto
    """
    from tailrace.cli.explain.counts import listing
    from tailrace.cli.output import show
    from tailrace.spec.plugins import use

    use(args.plugin or ())
    show(listing(args.names, args.over), view_of(args))
