# SPDX-License-Identifier: Apache-2.0
"""`tailrace topologies`, `workloads`, `faults`, `transports`: what words name, with its keys."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailrace.cli.options import Form, Plugin

if TYPE_CHECKING:
    from tailrace.words.registry import Registry

KINDS = {
    "topologies": "Show families of topologies with their keys, as they are written on the command line.",
    "workloads": "Show workloads with their keys, as they are written on the command line.",
    "faults": "Show faults with their keys, as they are written on the command line.",
    "transports": "Show transports with their keys, as they are written on the command line.",
}


def registry_of(kind: str) -> Registry[Any]:
    """What is registered of topologies, workloads, faults or transports."""
    if kind == "topologies":
        from tailrace.topology.parse import FAMILIES

        return FAMILIES
    if kind == "workloads":
        from tailrace.experiments.workloads.workload import WORKLOADS

        return WORKLOADS
    if kind == "transports":
        from tailrace.hosts.options.transports import TRANSPORTS

        return TRANSPORTS
    from tailrace.experiments.faults.parse import FAULTS

    return FAULTS


def _command(kind: str) -> Callable[..., None]:
    def show(
        names: Annotated[
            list[str] | None, typer.Argument(metavar="NAME", help="None: all.", show_default=False)
        ] = None,
        plugin: Plugin = None,
        output: Annotated[Form, typer.Option("-o", "--output", help="How to write it.")] = Form.TABLE,
    ) -> None:
        from tailrace.cli.output import render
        from tailrace.controller.listing.listing import Column, Listing
        from tailrace.words.plugins import use

        use(plugin or ())
        registry = registry_of(kind)
        chosen = [registry.entry(name) for name in names] if names else list(registry)
        columns = ("name", "key", "values", "default", "meaning")
        rows: list[dict[str, Any]] = []
        for entry in chosen:
            rows.append(dict.fromkeys(columns, "") | {"name": entry.name, "meaning": entry.help})
            for key in registry.keys(entry.name):
                shown = (entry.name, key.name, key.values, key.default_text, key.help)
                rows.append(dict(zip(columns, shown, strict=True)))
        named = [Column(name, key=name in ("name", "key")) for name in columns]
        sys.stdout.write(render(Listing(kind, tuple(named), tuple(rows)), output))

    return show


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for kind, text in KINDS.items():
        app.command(kind, help=text, rich_help_panel="Explain")(_command(kind))
