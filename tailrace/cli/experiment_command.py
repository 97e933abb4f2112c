# SPDX-License-Identifier: Apache-2.0
"""What `tailrace run` and `tailrace compare` do once their options are read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tailrace.experiments.backends.mininet import MininetBackend
from tailrace.experiments.backends.outcome import Backend
from tailrace.experiments.backends.target import choose
from tailrace.experiments.backends.virtual.run import Stops, VirtualBackend
from tailrace.experiments.errors import RunError
from tailrace.experiments.plan import budget
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.experiments.plan.words import labels
from tailrace.experiments.results.result import Result, comparison, problems, to_json, write_result
from tailrace.experiments.results.staging import staged, write_file
from tailrace.experiments.results.table import make_table, show
from tailrace.experiments.run.compare import Comparison, compare, compare_at_once, plans, write
from tailrace.experiments.run.pool import Where, run_all
from tailrace.experiments.run.progress import Display
from tailrace.experiments.run.run import run
from tailrace.experiments.run.signals import Interrupted, stoppable
from tailrace.experiments.run.sweep import SWEEP, document, make_sweep_table, parse_axis, points
from tailrace.experiments.run.task import Failed, backend_of
from tailrace.hosts import compiled
from tailrace.words import SpecError
from tailrace.words.errors import UnitError
from tailrace.words.units import format_time, parse_time_ns

_PCAP = "pcap"


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go: the folder, JSON on standard output instead of a table, captures of every link."""

    folder: Path
    json: bool = False
    pcap: bool = False


def run_one(experiment: Experiment, output: Output, stop_at: Sequence[str] = ()) -> None:
    """Run one experiment, write its folder, and show it.

    Args:
        experiment: what to run.
        output: where results go.
        stop_at: virtual times at full speed, such as 50us, at which the run stops to be looked at.

    Raises:
        SpecError: words that do not fit together, or a target that cannot do what they say.
        RunError: the run failed, was interrupted, or has flows that did not finish.
    """
    display = Display(sys.stderr)
    target = _target(experiment.target, display)
    planned = plan(experiment, target)
    stops_ns = _stops_ns(stop_at, planned)
    _check_budget(planned, display)
    label = labels([experiment.scheme])[0]
    with interruptible(), staged(output.folder) as folder:
        with display.run(label) as report:
            pcap_dir = folder / _PCAP if output.pcap else None
            backend = _stopping(stops_ns, display) if stops_ns else backend_of(target)
            result = run(planned, backend, report, label=label, pcap_dir=pcap_dir)
        write_result(result, folder)
    for time_ns in stops_ns:
        if time_ns > (result.summary.virtual_ns or 0):
            display.warn(f"the run was over before it could stop at {format_time(time_ns)}")
    _show([result], label, to_json(result.summary) if output.json else None)
    display.say(f"results: {output.folder}")
    _judge([result], [], display)


def _stops_ns(texts: Sequence[str], planned: Plan) -> tuple[int, ...]:
    """The virtual times at which a run is to stop, at its time scale."""
    if texts and planned.target != "virtual":
        raise SpecError("--stop-at needs target virtual")
    try:
        times_ns = sorted({parse_time_ns(text) for text in texts})
    except UnitError as error:
        raise SpecError(f"--stop-at: {error}") from error
    return tuple(round(time_ns * planned.job.time_scale) for time_ns in times_ns)


def _stopping(times_ns: tuple[int, ...], display: Display) -> Backend:
    """Virtual time with stops; a line on standard input ends each."""
    # whoever does not stop needs no server
    from tailrace.experiments.backends.virtual.stop import STANDARD_INPUT, Lines, let_inspect

    halt = let_inspect(display.say, Lines(STANDARD_INPUT).wait)
    return VirtualBackend(stops=Stops(times_ns, halt))


def run_several(
    base: Experiment,
    schemes: Sequence[str],
    output: Output,
    *,
    names: Sequence[str] = (),
    workers: int = 1,
) -> None:
    """Compare schemes, without faults and then with those of `base`; write their folder, and show the table.

    Args:
        base: what to run, but for the scheme.
        schemes: words of each.
        output: where results go.
        names: a label for each scheme; empty: labels are made of the words.
        workers: processes that run in virtual time at once; with one, every run is made anew.

    Raises:
        SpecError: words that do not fit together, or a target that cannot do what they say.
        RunError: a run failed, was interrupted, or has flows that did not finish.
    """
    display = Display(sys.stderr)
    target = _target(base.target, display)
    planned = plans(base, schemes, target, names)
    _check_budget(planned[0][1], display)
    for text in _own_transports(base, planned):
        display.say(text)
    if workers > 1 and output.pcap:
        raise SpecError("--pcap: links are captured with one worker only")
    done = _compared(planned, target, output, workers, display)
    document = comparison(done.results, done.labels[0], done.failed)
    _show(done.results, done.labels[0], to_json(document) if output.json else None)
    display.say(f"results: {output.folder}")
    failures = [f"{failure.case}, {failure.label}: {failure.reason}" for failure in done.failed]
    _judge(done.results, failures, display)


def _compared(
    planned: Sequence[tuple[str, Plan]], target: str, output: Output, workers: int, display: Display
) -> Comparison:
    """Run all, and write what came of it."""
    if workers > 1:
        with interruptible("what is finished is kept, and need not be run again"):
            done = compare_at_once(planned, workers, output.folder, display)
            with staged(output.folder) as folder:
                write(done, folder)
        return done
    with interruptible(), staged(output.folder) as folder:
        done = compare(planned, backend_of(target), display, folder / _PCAP if output.pcap else None)
        write(done, folder)
    return done


def _own_transports(base: Experiment, planned: Sequence[tuple[str, Plan]]) -> list[str]:
    """A line for each transport that some schemes keep although another one was asked for."""
    own: dict[str, list[str]] = {}
    for label, one in planned:
        if one.experiment.transport != base.transport:
            own.setdefault(one.job.nic.transport, []).append(label)
    return [f"{', '.join(dict.fromkeys(own[name]))}: over {name}, and no other transport" for name in own]


def run_sweep(base: Experiment, axes: Sequence[str], output: Output, where: Where, *, again: bool) -> None:
    """Run an experiment at every combination of some keys' values; results that are there already stay.

    Raises:
        SpecError: words that do not fit together, or a cluster that cannot be reached.
        RunError: a run failed, was interrupted, or has flows that did not finish.
    """
    display = Display(sys.stderr)
    target = _target(base.target, display)
    parsed = [parse_axis(text) for text in axes]
    found = points(base, parsed, target)
    with interruptible("what is finished is kept, and need not be run again"):
        tasks = [point.task for point in found]
        ends = run_all(tasks, output.folder, where, display, again=again)
        done = [(point, ends[point.task.key]) for point in found]
        written = document(parsed, done)
        _keep(output.folder / SWEEP, to_json(written))
    results = [(point, end) for point, end in done if isinstance(end, Result)]
    if output.json:
        sys.stdout.write(to_json(written))
    elif results:
        show(make_sweep_table(results), sys.stdout)
    display.say(f"results: {output.folder}")
    failures = [f"{point.task.label}: {end.reason}" for point, end in done if isinstance(end, Failed)]
    _judge([end for _, end in results], failures, display)


def _keep(path: Path, text: str) -> None:
    """Writes a file; RunError where that cannot be done, for the runs before it were."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from error


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
    with interruptible():
        MininetBackend().prompt(planned.job)


def _target(wanted: str, display: Display) -> str:
    """The target that runs, after saying which it is and why."""
    choice = choose(wanted)
    display.say(f"target {choice.name}: {choice.reason}")
    if lost := compiled.lost():
        display.warn(lost)
    return choice.name


def _check_budget(planned: Plan, display: Display) -> None:
    """Says at which time scale a real-time target runs, and warns if that is too fast for this machine."""
    scale = planned.job.time_scale
    if scale != 1:
        own = planned.experiment.time_scale is None
        why = ", so that this machine can hold it" if own else ", as asked for"
        display.say(f"everything runs {scale:g} times slower than stated{why}")
    full_speed = planned.experiment.meant.topology
    warning = budget.warning(full_speed, planned.target, planned.experiment.mtu_bytes, scale)
    if warning is not None:
        display.warn(warning)


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
def interruptible(then: str = "no results were written") -> Iterator[None]:
    """Turns SIGINT and SIGTERM into a failed run, after everything inside has cleaned up."""
    try:
        with stoppable():
            yield
    except Interrupted:
        raise RunError(f"interrupted; {then}") from None
