# SPDX-License-Identifier: Apache-2.0
"""The command `tailrace`.

Each module of COMMANDS adds its subcommand with `register(app)`. Such a module imports nothing heavy at its
top, so that help, completion and inspection start fast; a test holds it to that.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from cli.errors import BAD_INPUT, DONE, FAILED, FailedError
from controller.errors import ControllerError
from experiments.errors import RunError
from spec import SpecError

PROGRAM = "tailrace"
COMMANDS = (
    *("run", "compare", "sweep", "paper", "report"),
    *("tables", "groups", "paths", "flows", "queues", "counters", "registers", "diff", "shell"),
    *("topology", "schemes"),
)
"""Modules of this package, in the order of the help."""

_EPILOG = """
Examples:

tailrace compare --schemes ecmp,letflow,flowcut

tailrace tables leaf1 --where 'table == ipv4_routes'

tailrace paths h1 h9

tailrace counters --watch 1 --where 'counter == port_tx'

tailrace tables --address s1=127.0.0.1:50051 --topology topology.json

Exit status: 0 done, 1 failed (or a difference was found), 2 bad input.
"""


def make_app() -> typer.Typer:
    """The command with all its subcommands."""
    app = typer.Typer(
        name=PROGRAM,
        epilog=_EPILOG,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for name in COMMANDS:
        importlib.import_module(f"cli.{name}").register(app)
    return app


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
) -> None:
    """Load balancing without reordering, in P4: run experiments, and look into running switches."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: words of the command line; None: those of the process.

    Returns:
        the exit status: 0 done, 1 failed, 2 bad input.
    """
    # gRPC writes lines of its own about servers that do not answer
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        status = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # who read our output has seen enough; Python must not complain when it flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


def _run(words: list[str]) -> int:
    try:
        status = make_app()(words, prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        return _fail(f"{error.format_message()} (see {PROGRAM} --help)", error.exit_code)
    except SpecError as error:
        return _fail(str(error), BAD_INPUT)
    except (ControllerError, FailedError, RunError) as error:
        return _fail(str(error), FAILED)
    except ImportError as error:
        if error.name is not None:
            raise
        # hosts refuses a TAILRACE_HOSTS that makes no sense, and says why
        return _fail(str(error), BAD_INPUT)
    return status if isinstance(status, int) else DONE


def _fail(message: str, status: int) -> int:
    if message:
        sys.stderr.write(f"{PROGRAM}: {' '.join(message.split())}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
