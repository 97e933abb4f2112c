# SPDX-License-Identifier: Apache-2.0
"""`tailrace lab`: sheets for courses, and checks of their answers."""

from __future__ import annotations

import csv
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.cli.arguments import argument, command, number
from tailrace.cli.errors import FailedError

if TYPE_CHECKING:
    from tailrace.labs.lab import Lab

_RIGHT = {True: "right", False: "wrong", None: "open"}


@command(
    argument("number", nargs="?", metavar="N", type=number(int, 1), help="lab; without it, all are listed"),
    argument("files", nargs="*", metavar="FILE", type=Path, help="with --check: further files; prints CSV"),
    argument("--start", metavar="DIR", type=Path, help="write the lab's files and an answer file into DIR"),
    argument(
        "--seed", metavar="NAME", help="with --start: your name, whose seed differs from others', or a seed"
    ),
    argument("--check", metavar="FILE", type=Path, help="check the answers in a file that --start wrote"),
)
def lab(args: Namespace) -> None:
    """List the labs, show the questions of a lab, start it, or check answers.

    Expected answers are measured in runs in virtual time. Checking lab 6 executes the student's code. The
    exit status is 1 if an answer is wrong or missing.
    """
    from tailrace.labs.lab import Sheet, load_labs, start
    from tailrace.spec import SpecError

    labs = load_labs()
    if (
        bool(args.start) != (args.seed is not None)
        or (args.start and args.check)
        or (args.files and not args.check)
    ):
        raise SpecError("lab: expected --start DIR --seed YOUR-NAME, or --check FILE")
    if args.number is None and not args.start and not args.check:
        sys.stdout.write("".join(f"{Sheet(each).title}\n" for each in labs))
        return
    if args.number not in labs:
        raise SpecError(f"lab: expected the number of a lab, 1 to {max(labs)}")
    made = labs[args.number]
    if args.start:
        sys.stderr.write("looking for a seed with which there is something to see ...\n")
        seed = start(made, args.start, args.seed)
        sys.stdout.write(f"lab {args.number} in {args.start}, seed {seed}\n")
    elif args.files:
        _check_course(args.number, [args.check, *args.files])
    elif args.check:
        _check(made, args.check)
    else:
        sheet = Sheet(args.number)
        sys.stdout.write(f"{sheet.title}\n\n{textwrap.indent(sheet.commands, '    ')}\n")
        for position, (key, (question, _)) in enumerate(sheet.questions.items(), 1):
            _write(f"{position}. {key}: ", question)


def _check(made: type[Lab], path: Path) -> None:
    """Prints a line for each answer. Raises FailedError unless all that count are right."""
    from tailrace.labs.lab import check

    checked = check(made, path)
    for key, (is_right, why) in checked.verdicts.items():
        _write(f"{key:<12} {_RIGHT[is_right]}  ", why)
    sys.stdout.write(f"{checked.right} of {checked.counted} answers are right\n")
    if checked.right < checked.counted:
        raise FailedError("")


def _check_course(number: int, paths: Sequence[Path]) -> None:
    """Prints a row of CSV for each file. Raises FailedError unless all are right."""
    from tailrace.labs.course import check_each

    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["file", "name", "seed", "right", "of"])
    all_right = True
    for path, checked in check_each(number, paths):
        if isinstance(checked, str):
            sys.stderr.write(f"tailrace: {checked}\n")
            row: tuple[object, ...] = ("", "", 0, "")
        else:
            row = (checked.name, checked.seed, checked.right, checked.counted)
        rows.writerow([path, *row])
        all_right &= row[2] == row[3]
    if not all_right:
        raise FailedError("")


def _write(start: str, text: str) -> None:
    width = max(shutil.get_terminal_size().columns - len(start), 20)
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    sys.stdout.write(start + ("\n" + " " * len(start)).join(lines) + "\n")
