# SPDX-License-Identifier: Apache-2.0
"""`tailrace plot`: a figure of results for print; `tailrace report`: a page of all figures.

Matplotlib is isolated from user configuration: the same results give the same figure file.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path

from tailrace.cli.arguments import argument, command
from tailrace.cli.experiment_options import OUT, PAGE

_FORMATS = ("pdf", "svg", "png")

_FILE = "matplotlibrc"
"""The configuration file that matplotlib reads first, from the current folder when it is imported."""


def draw_alone() -> None:
    """Keeps matplotlib from reading the user's configuration and from logging; call this before matplotlib
    is imported.
    """
    os.environ.pop("MPLBACKEND", None)
    os.environ["MATPLOTLIBRC"] = os.devnull
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    if Path(_FILE).exists():
        _import_elsewhere()


def _import_elsewhere() -> None:
    """Imports matplotlib in the folder of its defaults: no variable stops it from reading ./matplotlibrc."""
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    here = Path.cwd()
    os.chdir(Path(spec.origin).parent / "mpl-data")
    try:
        import matplotlib  # noqa: F401
    finally:
        os.chdir(here)


def file_for(folder: Path, out: Path | None, name: str) -> Path:
    """The file to write: `out`, or `name` in a folder of results, which may be from another person."""
    path = folder / name if out is None else out
    # a link in the folder is never followed: its creator could choose which file is overwritten
    if out is None and path.is_symlink():
        path.unlink()
    return path


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


@command(
    argument(
        "folder",
        nargs="?",
        metavar="DIR",
        type=Path,
        default=OUT.settings["default"],
        help="folder of results of run, compare, sweep or paper",
    ),
    argument("--out", metavar="FILE", type=Path, help=f"file to write [default: DIR/{PAGE}]"),
    argument("--title", metavar="TEXT", help="title of the page"),
)
def report(args: Namespace) -> None:
    """Make one HTML page of all results below a folder: figures, tables, claims, seeds and commands.

    The page contains everything that it shows, and opens without a network.
    """
    draw_alone()
    from tailrace.report.collect import collect
    from tailrace.report.page import render
    from tailrace.spec import SpecError
    from tailrace.spec.atomic import write_file
    from tailrace.study.progress import Display

    folder = args.folder
    collected = collect(folder)
    for problem in collected.problems:
        Display(sys.stderr).warn(problem)
    # names of files may contain bytes that are no valid text
    content = render(collected, args.title or f"Results in {folder}").encode(errors="backslashreplace")
    try:
        path = file_for(folder, args.out, PAGE)
        write_file(path, content)
    except OSError as error:
        raise SpecError(f"{args.out or folder / PAGE}: {error.strerror}") from error
    sys.stdout.write(f"{path}\n")
