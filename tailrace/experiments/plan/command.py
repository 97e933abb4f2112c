# SPDX-License-Identifier: Apache-2.0
"""The command lines that run experiments again: every summary and page takes them from here.

Options follow from the fields of an experiment (plan/experiment.py), so that of a new key there is one, too.
Plug-ins that were loaded from files are among them.
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
    """Runs an experiment with each of its seeds."""
    return shlex.join([PROGRAM, RUN, *experiment.options()])


def compare_command(base: Experiment, schemes: Sequence[str]) -> str:
    """Compares schemes on the traffic of an experiment; empty where no list of schemes can express these."""
    wanted = tuple(dict.fromkeys(schemes))
    text = ",".join(wanted)
    if not _expresses(text, wanted):
        return ""
    return shlex.join([PROGRAM, COMPARE, "--scheme", text, *base.options("scheme")])


def sweep_command(base: Experiment, axes: Mapping[str, str | None]) -> str:
    """Runs a sweep; `axes` are the texts of --set without the key, by key. Empty where no text can express
    the values of one (None), or no list of schemes that of the experiment.
    """
    if None in axes.values() or not _expresses(base.scheme, (base.scheme,)):
        return ""
    sets = [argument for key, text in axes.items() for argument in (f"--{_SET}", f"{key}={text}")]
    return shlex.join([PROGRAM, SWEEP, *sets, *base.options(*axes)])


def _expresses(text: str, schemes: tuple[str, ...]) -> bool:
    """Whether a list of schemes on the command line stands for these."""
    try:
        return split_schemes(text) == schemes
    except SpecError:
        return False


def checked(command: str) -> str:
    """A command of a file of results as a shell takes it; empty if it is none that this module makes."""
    try:
        arguments = shlex.split(command)
        if arguments[:1] != [PROGRAM] or arguments[1:2] not in [[name] for name in COMMANDS]:
            return ""
        read_options(arguments[2:], also=(_SET,))
    except ValueError:  # of shlex, and SpecError
        return ""
    return printable(shlex.join(arguments))
