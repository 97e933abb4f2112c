# SPDX-License-Identifier: Apache-2.0
"""Commands that explain: `tailrace schemes`, `workloads`, `topology`, `resources`, `coverage` and others."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from tailrace.cli.arguments import Command, argument, command, flag, number
from tailrace.cli.complete import KINDS, complete_file, complete_names, complete_specs, registry_of
from tailrace.cli.experiment_options import EXPERIMENT, values_of
from tailrace.cli.options import PLUGIN, view_of, view_options
from tailrace.tables.listing import Column

COLUMNS = (
    Column("name", key=True, grouped=True),
    Column("key", key=True),
    Column("values"),
    Column("default"),
    Column("meaning"),
)
"""Of `topologies`, `workloads`, `faults` and `transports`."""

PARTS = ("switches", "hosts", "links")


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


def _command(kind: str) -> Command:
    """The command that lists a kind of spec, named by its plural."""

    def explain(args: Namespace) -> None:
        from tailrace.cli.output import show
        from tailrace.spec.plugins import use
        from tailrace.tables.listing import Listing

        use(args.plugin or ())
        registry = registry_of(KINDS[kind])
        chosen = [registry.entry(name) for name in args.names] if args.names else list(registry)
        headers = [column.name for column in COLUMNS]
        rows: list[dict[str, Any]] = []
        for entry in chosen:
            rows.append(dict.fromkeys(headers, "") | {"name": entry.name, "meaning": entry.help})
            for key in registry.keys(entry.name):
                shown = (entry.name, key.name, key.values, key.default_text, key.help)
                rows.append(dict(zip(headers, shown, strict=True)))
        show(Listing(kind, COLUMNS, tuple(rows)), view_of(args))

    names = argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="Entries to list (default: all).",
        complete=complete_names(KINDS[kind]),
    )
    text = f"Show {kind} with their keys, as they are written on the command line."
    return Command((names, PLUGIN, view_options("cli.explain.commands")), explain, text)


topologies, workloads, faults, transports = map(_command, ("topologies", "workloads", "faults", "transports"))


@command(
    argument(
        "spec",
        metavar="SPEC",
        help="Topology, such as leaf-spine:leaves=2,spines=4,hosts=8, or FILE.",
        complete=complete_specs("topology", files=True),
    ),
    argument("--show", choices=["all", *PARTS], default="all", help="Part to show."),
    argument("--svg", metavar="FILE", type=Path, help="Draw the topology into this file instead."),
    PLUGIN,
    view_options(None),
)
def topology(args: Namespace) -> None:
    """Show the switches, hosts, links and addresses of a topology.

    tailrace topology leaf-spine:leaves=2,spines=4,hosts=2 --show links
    tailrace topology fat-tree:k=4 --svg fat-tree.svg
    """
    from tailrace.cli.explain.topology_text import show
    from tailrace.cli.figures import draw_alone
    from tailrace.spec.plugins import use
    from tailrace.topology import parse_topology

    use(args.plugin or ())
    network = parse_topology(args.spec)
    if args.svg is None:
        show(network, PARTS if args.show == "all" else (args.show,), view_of(args))
        return
    draw_alone()
    from tailrace.report.figures.plot import save
    from tailrace.report.topology_map import topology_figure

    save(topology_figure(network, named=True), args.svg, "svg")
    sys.stdout.write(f"{args.svg}\n")


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


@command(
    argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="Coverage file written by a switch with --coverage DIR, or that DIR.",
    ),
    flag("--unused", help="List the parts of programs that no packet has executed."),
    argument("--lcov", metavar="FILE", type=Path, help="Also write an lcov tracefile."),
    view_options("cli.explain.coverage_table"),
)
def coverage(args: Namespace) -> None:
    """Show what packets have executed: parser states, tables, entries, actions, conditions, statements.

    tailrace coverage build/coverage --unused
    tailrace coverage build/coverage --lcov build/p4.info
    """
    from tailrace.cli.explain.coverage_table import listing, unused_listing
    from tailrace.cli.output import show
    from tailrace.spec import SpecError
    from tailrace.spec.atomic import write_output
    from tailrace.switch.trace.coverage import CoverageError, lcov, merged, read

    try:
        coverage = merged(record for path in _files(args.files) for record in read(path))
    except CoverageError as error:
        raise SpecError(str(error)) from None
    if args.lcov is not None:
        write_output(args.lcov, "".join(f"{line}\n" for line in lcov(coverage)))
    show(unused_listing(coverage) if args.unused else listing(coverage), view_of(args))


def _files(paths: list[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


_SPEC = complete_specs("topology", files=True)


@command(
    argument("source", metavar="IN", help="Topology, workload or distribution.", complete=complete_file),
    argument("path", metavar="OUT", type=Path, help="File to write."),
    argument("--format", metavar="NAME", required=True, help="Format of OUT: docs/reference/formats.md."),
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
