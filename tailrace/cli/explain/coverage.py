# SPDX-License-Identifier: Apache-2.0
"""`tailrace coverage`: what of P4 programs packets have used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailrace.cli.options import View, with_view


@with_view
def coverage(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Of a switch with --coverage DIR; or such a folder.", exists=True
        ),
    ],
    unused: Annotated[bool, typer.Option("--unused", help="List what no packet has used.")] = False,
    lcov: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an lcov tracefile.", show_default=False)
    ] = None,
    *,
    view: View,
) -> None:
    """Show what packets have used: parser states, tables, entries, actions, conditions, statements.

    tailrace coverage build/coverage --unused

    tailrace coverage build/coverage --lcov build/p4.info
    """
    from tailrace.cli.explain.coverage_table import listing, unused_listing
    from tailrace.cli.output import show
    from tailrace.spec import SpecError
    from tailrace.switch.trace.coverage import CoverageError, merged, read
    from tailrace.switch.trace.coverage import lcov as lcov_lines

    try:
        coverage = merged(record for path in _files(files) for record in read(path))
    except CoverageError as error:
        raise SpecError(str(error)) from None
    if lcov is not None:
        _write(lcov, "".join(f"{line}\n" for line in lcov_lines(coverage)))
    show(unused_listing(coverage) if unused else listing(coverage), view)


def _write(path: Path, text: str) -> None:
    from tailrace.spec import SpecError
    from tailrace.spec.atomic import write_file

    try:
        write_file(path, text)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from None


def _files(paths: list[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("coverage", rich_help_panel="Explain")(coverage)
