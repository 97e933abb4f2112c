# SPDX-License-Identifier: Apache-2.0
"""`tailrace lab`: sheets for courses, and checks of their answers."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace
from pathlib import Path

from tailrace.cli.arguments import argument, command, number
from tailrace.cli.errors import FailedError

_WIDTH = 100
_RIGHT = {True: "right", False: "wrong", None: "open"}


@command(
    argument("number", nargs="?", metavar="N", type=number(int, 1), help="lab; without it, all are listed"),
    argument("--start", metavar="DIR", type=Path, help="write the lab's files and an answer file into DIR"),
    argument("--seed", metavar="NAME", help="with --start: your name; each name has other traffic"),
    argument("--check", metavar="FILE", type=Path, help="check the answers in a file that --start wrote"),
)
def lab(args: Namespace) -> None:
    """List the labs, show the questions of a lab, start it, or check answers.

    Expected answers are measured in runs in virtual time. Checking lab 6 executes the student's code. The
    exit status is 1 if an answer is wrong or missing.
    """
    from tailrace.labs.lab import Sheet, check, load_labs, start
    from tailrace.spec import SpecError

    labs = load_labs()
    if (args.start and args.check) or (args.seed is not None and not args.start):
        raise SpecError("lab: expected --start DIR, with --seed or not, or --check FILE")
    if args.number is None and not args.start and not args.check:
        sys.stdout.write("".join(f"{Sheet(each).title}\n" for each in labs))
        return
    if args.number not in labs:
        raise SpecError(f"lab: expected the number of a lab, 1 to {max(labs)}")
    made = labs[args.number]
    if args.start:
        seed = start(made, args.start, args.seed or "")
        sys.stdout.write(f"lab {args.number} in {args.start}, seed {seed}\n")
    elif args.check:
        verdicts = check(made, args.check)
        for key, (is_right, why) in verdicts.items():
            _write(f"{key:<12} {_RIGHT[is_right]}  ", why)
        right = sum(is_right is True for is_right, _ in verdicts.values())
        sys.stdout.write(f"{right} of {len(verdicts)} answers are right\n")
        if right < len(verdicts):
            raise FailedError("")
    else:
        sheet = Sheet(args.number)
        sys.stdout.write(f"{sheet.title}\n\n{textwrap.indent(sheet.commands, '    ')}\n")
        for position, (key, (question, _)) in enumerate(sheet.questions.items(), 1):
            _write(f"{position}. {key}: ", question)


def _write(start: str, text: str) -> None:
    lines = textwrap.wrap(text, _WIDTH - len(start), break_on_hyphens=False)
    sys.stdout.write(start + ("\n" + " " * len(start)).join(lines) + "\n")
