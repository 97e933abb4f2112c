# SPDX-License-Identifier: Apache-2.0
"""The command `tailrace` and its subcommands; tailrace/cli/main.py runs it.

Each module of COMMANDS adds its subcommand with `register(app)`. Such a module imports nothing heavy at its
top, so that help, completion and inspection start fast; a test holds it to that.
"""

from __future__ import annotations

import importlib
import os
from typing import Annotated

import typer

from tailrace.cli.errors import DEBUG, PROGRAM
from tailrace.cli.start.group import CommandGroup, group_of

COMMANDS = (
    *("run", "compare", "sweep", "paper", "store.results", "report"),
    *("inspect.tables", "inspect.groups", "inspect.paths", "inspect.flows", "inspect.queues"),
    *(
        "inspect.counters",
        "inspect.registers",
        "inspect.diff",
        "inspect.shell",
        "inspect.push",
        "inspect.trace",
    ),
    *("explain.topology", "explain.schemes", "explain.registries", "explain.resources", "explain.coverage"),
)
"""Modules of this package, in the order of the help."""

_EPILOG = """
Examples:

tailrace compare --scheme ecmp,letflow,flowcut

tailrace tables leaf1 ipv4_routes

tailrace paths h1 h9

tailrace counters drops --watch 1

tailrace tables --address s1=127.0.0.1:50051 --topology topology.json

Exit status: 0 done, 1 failed (or a difference was found), 2 bad input, 130 interrupted,
143 ended by SIGTERM, 129 by SIGHUP.
"""


def make_app() -> CommandGroup:
    """The command with all its subcommands."""
    app = typer.Typer(
        cls=CommandGroup,
        name=PROGRAM,
        epilog=_EPILOG,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for name in COMMANDS:
        importlib.import_module(f"tailrace.cli.{name}").register(app)
    return group_of(app)


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"{PROGRAM} {version(PROGRAM)}")
        except PackageNotFoundError:
            typer.echo(f"{PROGRAM} 0 (not installed)")
        raise typer.Exit


def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show the traceback of an internal error.")
    ] = False,
) -> None:
    """Load balancing without reordering, in P4: run experiments, and look into running switches."""
    if debug:
        os.environ[DEBUG] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
