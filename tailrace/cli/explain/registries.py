# SPDX-License-Identifier: Apache-2.0
"""`tailrace topologies`, `workloads`, `faults`, `transports`: names that specs may use, with their keys."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tailrace.cli.arguments import Command, argument
from tailrace.cli.complete import KINDS, complete_names, registry_of
from tailrace.cli.options import PLUGIN, view_of, view_options
from tailrace.tables.listing import Column

COLUMNS = (
    Column("name", key=True, grouped=True),
    Column("key", key=True),
    Column("values"),
    Column("default"),
    Column("meaning"),
)


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
    return Command((names, PLUGIN, view_options("cli.explain.registries")), explain, text)


topologies, workloads, faults, transports = map(_command, ("topologies", "workloads", "faults", "transports"))
