# SPDX-License-Identifier: Apache-2.0
"""`tailrace topology`: the switches, hosts and links of a topology spec."""

from __future__ import annotations

from argparse import Namespace

from tailrace.cli.arguments import argument, command
from tailrace.cli.complete import complete_specs
from tailrace.cli.options import PLUGIN, view_of, view_options

PARTS = ("switches", "hosts", "links")


@command(
    argument(
        "spec",
        metavar="SPEC",
        help="Topology, such as leaf-spine:leaves=2,spines=4,hosts=8, or FILE.",
        complete=complete_specs("topology", files=True),
    ),
    argument("--show", choices=["all", *PARTS], default="all", help="Part to show."),
    PLUGIN,
    view_options(None),
)
def topology(args: Namespace) -> None:
    """Show the switches, hosts, links and addresses of a topology.

    tailrace topology leaf-spine:leaves=2,spines=4,hosts=2 --show links
    """
    from tailrace.cli.explain.topology_text import show
    from tailrace.spec.plugins import use
    from tailrace.topology import parse_topology

    use(args.plugin or ())
    show(parse_topology(args.spec), PARTS if args.show == "all" else (args.show,), view_of(args))
