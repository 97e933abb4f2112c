# SPDX-License-Identifier: Apache-2.0
"""`tailrace schemes`: schemes, their variants and parameters."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.complete import complete_names
from tailrace.cli.experiment_options import EXPERIMENT, values_of
from tailrace.cli.options import PLUGIN, view_of, view_options


@command(
    argument(
        "names",
        nargs="*",
        metavar="SCHEME",
        help="Schemes to list (default: all).",
        complete=complete_names("scheme"),
    ),
    PLUGIN,
    EXPERIMENT,
    view_options("cli.explain.scheme_text"),
)
def schemes(args: Namespace) -> None:
    """List schemes with their parameters, units and defaults, as they are written on the command line.

    With --topology or other options of a run, show the values that such a run would use, and its queue
    limits; the default --target is virtual.

        tailrace schemes flowcut --topology leaf-spine:leaves=2,spines=4,hosts=8 --transport dcqcn
    """
    from tailrace.cli.explain.scheme_text import listing
    from tailrace.cli.output import show

    show(listing(args.names, values=values_of(args)), view_of(args))
