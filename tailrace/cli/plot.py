# SPDX-License-Identifier: Apache-2.0
"""`tailrace plot`: a figure of a folder of results, for print."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path

from tailrace.cli.arguments import argument, command

_FORMATS = ("pdf", "svg", "png")


def _complete_kind(_prefix: str) -> Collection[str]:
    from tailrace.report.kinds import KINDS

    return KINDS


def _label(text: str) -> tuple[str, str]:
    """A label, which may be a spec with equals signs, and a name."""
    label, equals, name = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected LABEL=NAME, found {text[:40]!r}")
    return label, name


@command(
    argument(
        "folder", metavar="OUT", type=Path, help="folder of results of run, compare or sweep, or of one run"
    ),
    argument(
        "kind",
        nargs="?",
        metavar="KIND",
        complete=_complete_kind,
        help="what to draw; without it the kinds are listed that OUT has data for",
    ),
    argument("--format", choices=_FORMATS, help="of the file [default: that of --out, or pdf]"),
    argument("--width", metavar="LENGTH", help="such as 3.3in, 8.4cm or 84mm"),
    argument("--height", metavar="LENGTH", help="[default: from the width]"),
    argument(
        "--log",
        action=argparse.BooleanOptionalAction,
        help="logarithmic axes of values [default: where they span more than a decade and a half]",
    ),
    argument(
        "--labels",
        metavar="LABEL=NAME",
        action="append",
        type=_label,
        help="name of a scheme, such as rlb=RLB*; may be repeated",
    ),
    argument("--out", metavar="FILE", type=Path, help="file to write [default: OUT/KIND.FORMAT]"),
)
def plot(args: Namespace) -> None:
    """Draw a figure of results: one line or bar for each scheme, intervals over seeds as bars or bands.

    tailrace plot out cdf --format pdf --width 3.3in --log --labels ecmp=ECMP
    """
    from tailrace.cli.drawing import draw_alone, file_for

    draw_alone()
    from tailrace.report.collect import open_study
    from tailrace.report.figures.names import named
    from tailrace.report.figures.plot import Look, parse_inches, save
    from tailrace.report.kinds import draw, located, possible
    from tailrace.spec import SpecError
    from tailrace.spec.errors import FileError

    suffix = args.format or ("" if args.out is None else args.out.suffix.removeprefix(".")) or _FORMATS[0]
    if suffix not in _FORMATS:
        raise SpecError(f"--out {args.out}: expected a file with the suffix .pdf, .svg or .png, or --format")
    width, height = (None if text is None else parse_inches(text) for text in (args.width, args.height))
    results = open_study(args.folder)
    with located(args.folder, SpecError):
        if args.kind is None:
            listed = possible(named(results, {}))
            sys.stdout.write("".join(f"{kind.name:<16} {kind.title}\n" for kind in listed))
            return
        figure = draw(results, args.kind, Look(width, height, args.log), dict(args.labels or ()))
        name = f"{args.kind}.{suffix}"
        try:
            path = save(figure, file_for(args.folder, args.out, name), suffix)
        except OSError as error:
            raise FileError(args.out or args.folder / name, "", error.strerror or str(error)) from error
    sys.stdout.write(f"{path}\n")
