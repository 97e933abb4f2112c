# SPDX-License-Identifier: Apache-2.0
"""What `tailrace run` and `tailrace compare` do once their options are read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from experiments import budget
from experiments.backend import Backend
from experiments.compare import compare, plans, write
from experiments.errors import RunError
from experiments.experiment import Experiment
from experiments.mininet_backend import MininetBackend
from experiments.nic import MTU_BYTES
from experiments.progress import Display
from experiments.result import Result, comparison, problems, to_json, write_result
from experiments.run import Plan, plan, run
from experiments.signals import Interrupted, stoppable
from experiments.staging import staged
from experiments.table import make_table, show
from experiments.target import choose
from experiments.virtual_backend import VirtualBackend
from experiments.words import labels
from spec import SpecError
from topology import parse_topology

_PCAP = "pcap"


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go: the folder, JSON on standard output instead of a table, captures of every link."""

    folder: Path
    json: bool = False
    pcap: bool = False


def run_one(experiment: Experiment, output: Output) -> None:
    """Run one experiment, write its folder, and show it.

    Raises:
        SpecError: words that do not fit together, or a target that cannot do what they say.
        RunError: the run failed, was interrupted, or has flows that did not finish.
    """
    display = Display(sys.stderr)
    target = _target(experiment.target, display)
    planned = plan(experiment, target)
    _check_budget(planned, display)
    label = labels([experiment.scheme])[0]
    with _interruptible(), staged(output.folder) as folder:
        with display.run(label) as report:
            pcap_dir = folder / _PCAP if output.pcap else None
            result = run(planned, _backend(target), report, label=label, pcap_dir=pcap_dir)
        write_result(result, folder)
    _show([result], label, to_json(result.summary) if output.json else None)
    display.say(f"results: {output.folder}")
    _judge([result], [], display)


def run_several(base: Experiment, schemes: Sequence[str], output: Output) -> None:
    """Compare schemes, without faults and then with those of `base`; write their folder, and show the table.

    Raises:
        SpecError: words that do not fit together, or a target that cannot do what they say.
        RunError: a run failed, was interrupted, or has flows that did not finish.
    """
    display = Display(sys.stderr)
    target = _target(base.target, display)
    planned = plans(base, schemes, target)
    _check_budget(planned[0][1], display)
    with _interruptible(), staged(output.folder) as folder:
        done = compare(planned, _backend(target), display, folder / _PCAP if output.pcap else None)
        write(done, folder)
    document = comparison(done.results, done.labels[0], done.failed)
    _show(done.results, done.labels[0], to_json(document) if output.json else None)
    display.say(f"results: {output.folder}")
    failures = [f"{failure.case}, {failure.label}: {failure.reason}" for failure in done.failed]
    _judge(done.results, failures, display)


def open_prompt(experiment: Experiment) -> None:
    """Bring the fabric up and give the user Mininet's prompt; the experiment's flows are not sent.

    Raises:
        SpecError: the target is virtual, which has no prompt.
        RunError: the fabric could not be brought up.
    """
    display = Display(sys.stderr)
    target = _target(experiment.target, display)
    if target == "virtual":
        raise SpecError("--cli needs Mininet: target bmv2 or native")
    planned = plan(experiment, target)
    _check_budget(planned, display)
    with _interruptible():
        MininetBackend().prompt(planned.job)


def _target(wanted: str, display: Display) -> str:
    """The target that runs, after saying which it is and why."""
    choice = choose(wanted)
    display.say(f"target {choice.name}: {choice.reason}")
    return choice.name


def _check_budget(planned: Plan, display: Display) -> None:
    """Says at which time scale a real-time target runs, and warns if that is too fast for this machine."""
    scale = planned.job.time_scale
    if scale != 1:
        display.say(f"everything runs {scale:g} times slower than stated, so that this machine can hold it")
    full_speed = parse_topology(planned.experiment.topology)
    warning = budget.warning(full_speed, planned.target, MTU_BYTES, scale)
    if warning is not None:
        display.warn(warning)


def _backend(target: str) -> Backend:
    """What runs jobs on a target."""
    return VirtualBackend() if target == "virtual" else MininetBackend()


def _show(results: Sequence[Result], first: str, document: str | None) -> None:
    """The table on standard output, or a JSON document instead."""
    if document is not None:
        sys.stdout.write(document)
    elif results:
        show(make_table(results, first), sys.stdout)


def _judge(results: Sequence[Result], failures: Sequence[str], display: Display) -> None:
    """Says what is wrong with the results; raises RunError unless all flows of all runs finished."""
    failed = list(failures)
    for result in results:
        for text in problems(result):
            display.warn(text)
        if not result.complete:
            failed.append(f"{result.case}, {result.label}: flows did not finish")
    overloaded = [result.summary.time_scale for result in results if result.summary.overloaded]
    if overloaded:
        display.say(f"a larger --time-scale than {max(overloaded):g} gives the machine more time")
    if failed:
        raise RunError("; ".join(failed))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turns SIGINT and SIGTERM into a failed run, after everything inside has cleaned up."""
    try:
        with stoppable():
            yield
    except Interrupted:
        raise RunError("interrupted; no results were written") from None
