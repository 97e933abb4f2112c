# SPDX-License-Identifier: Apache-2.0
"""`tailrace convert`: a topology, a workload or a distribution of flow sizes in the format of another
tool.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command, number
from tailrace.cli.complete import complete_file, complete_format, complete_specs
from tailrace.cli.options import PLUGIN


@command(
    argument(
        "source",
        metavar="IN",
        help="Spec or file of a topology or workload, or name or file of a distribution of flow sizes.",
        complete=complete_file,
    ),
    argument("path", metavar="OUT", type=Path, help="File to write."),
    argument(
        "--format",
        metavar="NAME",
        required=True,
        help="Format of OUT, which decides what IN is; docs/formats.md lists them.",
        complete=complete_format,
    ),
    argument(
        "--topology",
        metavar="SPEC",
        default="",
        help="Topology of a workload.",
        complete=complete_specs("topology", files=True),
    ),
    argument(
        "--seed", metavar="N", type=number(int, 0), default=1, help="Seed of the run whose flows are written."
    ),
    PLUGIN,
)
def convert(args: Namespace) -> None:
    """Write a topology, a workload or a distribution of flow sizes in the format of another tool.

    tailrace convert fat-tree:k=4 net.txt --format hpcc-topology

    tailrace convert permutation:size=1MiB flows.cm --format htsim-cm --topology fat-tree:k=4
    """
    from tailrace.api.convert import convert
    from tailrace.spec.plugins import use

    use(args.plugin or ())
    convert(args.source, args.path, args.format, topology=args.topology, seed=args.seed)
