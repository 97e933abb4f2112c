# SPDX-License-Identifier: Apache-2.0
"""`tailrace coverage`: which parts of P4 programs packets have executed."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command, flag
from tailrace.cli.options import view_of, view_options


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
