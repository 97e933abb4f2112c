# SPDX-License-Identifier: Apache-2.0
"""Builds the command lines that repeat experiments, for all summaries and pages.

The options follow from the fields of an experiment (plan/experiment.py), so a new key has its option at once.
Plug-ins that were loaded from files are included (--plugin).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.experiment_file import read_options
from tailrace.experiments.plan.spec_list import split_schemes
from tailrace.spec import SpecError
from tailrace.spec.text import printable

PROGRAM = "tailrace"
RUN, COMPARE, SWEEP = COMMANDS = ("run", "compare", "sweep")
_SET = "set"


def run_command(experiment: Experiment) -> str:
    """The command that runs an experiment with each of its seeds."""
    return shlex.join([PROGRAM, RUN, *experiment.options()])


def compare_command(base: Experiment, schemes: Sequence[str]) -> str:
    """The command that compares schemes on an experiment's traffic; empty if --scheme cannot express them."""
    wanted = tuple(dict.fromkeys(schemes))
    text = ",".join(wanted)
    if not _expresses(text, wanted):
        return ""
    return shlex.join([PROGRAM, COMPARE, "--scheme", text, *base.options("scheme")])


def sweep_command(base: Experiment, axes: Mapping[str, str | None]) -> str:
    """The command that runs a sweep; `axes` has the values of each --set option as a string, by key. It is
    empty if the values of an axis (None) or the scheme cannot be written as an option.
    """
    if None in axes.values() or not _expresses(base.scheme, (base.scheme,)):
        return ""
    sets = [argument for key, text in axes.items() for argument in (f"--{_SET}", f"{key}={text}")]
    return shlex.join([PROGRAM, SWEEP, *sets, *base.options(*axes)])


def _expresses(text: str, schemes: tuple[str, ...]) -> bool:
    """Whether `text`, as the value of --scheme, is parsed into exactly these schemes."""
    try:
        return split_schemes(text) == schemes
    except SpecError:
        return False


def checked(command: str) -> str:
    """A command from a results file, quoted for a shell; empty if it is not one that this module makes."""
    try:
        arguments = shlex.split(command)
        if arguments[:1] != [PROGRAM] or arguments[1:2] not in [[name] for name in COMMANDS]:
            return ""
        read_options(arguments[2:], also=(_SET,))
    except ValueError:  # raised by shlex; SpecError is a ValueError, too
        return ""
    return printable(shlex.join(arguments))
