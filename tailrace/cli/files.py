# SPDX-License-Identifier: Apache-2.0
"""`tailrace convert` and `tailrace dissector`: files for other tools."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command, number
from tailrace.cli.complete import complete_file, complete_specs
from tailrace.cli.options import PLUGIN

_SPEC = complete_specs("topology", files=True)


@command(
    argument("source", metavar="IN", help="Topology, workload or distribution.", complete=complete_file),
    argument("path", metavar="OUT", type=Path, help="File to write."),
    argument("--format", metavar="NAME", required=True, help="Format of OUT, such as csv: docs/formats.md."),
    argument("--topology", metavar="SPEC", default="", help="Topology of a workload.", complete=_SPEC),
    argument("--seed", metavar="N", type=number(int, 0), default=1, help="Seed of the run of a workload."),
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


@command()
def dissector(_args: Namespace) -> None:
    """Print a Wireshark dissector (Lua) of EtherType 0x88B5 and of the UDP headers of Flowcut's NICs.

    tailrace dissector > tailrace.lua
    """
    from tailrace.codec.dissector import lua

    sys.stdout.write(lua())
