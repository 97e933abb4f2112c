# SPDX-License-Identifier: Apache-2.0
"""`tailrace topologies`, `workloads`, `faults`, `transports`: what specs name, with its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from tailrace.cli.complete import KINDS, complete_declared
from tailrace.cli.options import Plugin, View, with_view
from tailrace.cli.start.names import registry_of
from tailrace.tables.listing import Column

_HELP = {
    "topologies": "Show families of topologies with their keys, as they are written on the command line.",
    "workloads": "Show workloads with their keys, as they are written on the command line.",
    "faults": "Show faults with their keys, as they are written on the command line.",
    "transports": "Show transports with their keys, as they are written on the command line.",
}

COLUMNS = (
    Column("name", key=True, grouped=True),
    Column("key", key=True),
    Column("values"),
    Column("default"),
    Column("meaning"),
)


def _command(kind: str) -> Callable[..., None]:
    @with_view
    def explain(
        names: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="NAME", help="None: all.", show_default=False, autocompletion=complete_declared
            ),
        ] = None,
        plugin: Plugin = None,
        *,
        view: View,
    ) -> None:
        from tailrace.cli.output import show
        from tailrace.spec.plugins import use
        from tailrace.tables.listing import Listing

        use(plugin or ())
        registry = registry_of(KINDS[kind])
        chosen = [registry.entry(name) for name in names] if names else list(registry)
        names_of = [column.name for column in COLUMNS]
        rows: list[dict[str, Any]] = []
        for entry in chosen:
            rows.append(dict.fromkeys(names_of, "") | {"name": entry.name, "meaning": entry.help})
            for key in registry.keys(entry.name):
                shown = (entry.name, key.name, key.values, key.default_text, key.help)
                rows.append(dict(zip(names_of, shown, strict=True)))
        show(Listing(kind, COLUMNS, tuple(rows)), view)

    return explain


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for kind, text in _HELP.items():
        app.command(kind, help=text, rich_help_panel="Explain")(_command(kind))
