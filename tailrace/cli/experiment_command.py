# SPDX-License-Identifier: Apache-2.0
"""What `tailrace run`, `compare` and `sweep` do after their options are parsed.

Rank: a process that simulates a part of a network in virtual time, as a rank of MPI.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UnsetType, structs

from tailrace import api
from tailrace.cli.errors import PROGRAM, StoppedError
from tailrace.cli.experiment_options import PAGE
from tailrace.cli.figures import draw_alone
from tailrace.cli.options import OutputFormat, View
from tailrace.cli.output import arranged, show
from tailrace.experiments.plan.axes import CASE, SCHEME
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.plan.spec_list import labels
from tailrace.results.atomic_folder import atomic_folder, check_place
from tailrace.results.estimates import comparison_groups
from tailrace.results.result import Result, to_json, write_result
from tailrace.results.results import FIGURE, ITSELF, Results, clear, set_aside
from tailrace.results.run_result import result_of
from tailrace.results.table import make_table, possible_columns
from tailrace.sim.errors import RunError
from tailrace.sim.mpi import NAME, World
from tailrace.sim.outcome import Outcome
from tailrace.spec import Error, SpecError
from tailrace.study.pool import PCAP
from tailrace.study.prepare import choose_target, report_scale
from tailrace.study.progress import Display
from tailrace.study.signals import Interrupted, stoppable
from tailrace.tables.listing import Listing

NOTHING_KEPT = "no results were written"
RUNS_KEPT = "finished runs are kept, and are not repeated next time"

_RANK_DIGITS = 9

_COMMON = "common"
"""The preset that compares all schemes."""


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """Where results go: the folder, the view on standard output, and whether every link is captured."""

    folder: Path
    view: View = field(default_factory=View)
    pcap: bool = False

    def check(self, *axes: str) -> None:
        """Checks before a run that --columns and --sort-by name possible columns; `axes` are the keys that a
        sweep varies.

        Raises:
            SpecError: there is no such column.
        """
        if self.view.format is not OutputFormat.JSON:
            arranged(Listing("results", possible_columns(axes or (CASE, SCHEME)), ()), self.view)

    def show(self, listing: Listing, document: str) -> None:
        """Prints the table to standard output, or instead the JSON document, which has all results.

        Raises:
            SpecError: there is no such column.
        """
        if self.view.format is OutputFormat.JSON:
            sys.stdout.write(document)
        elif listing.rows:
            show(listing, self.view)


@contextmanager
def with_ranks(text: str) -> Iterator[int | World]:
    """The processes that --ranks asks for: their number, or the MPI world that mpiexec has started.

    Under MPI only rank 0 reports errors, for all ranks: its exit status is that of mpiexec.

    Raises:
        SpecError: the text is neither a number nor `mpi`, or there is no MPI.
    """
    if text != NAME:
        if not text.isascii() or not text.isdigit() or len(text) > _RANK_DIGITS:
            raise SpecError(f"--ranks: expected a number or {NAME}, found {text[:40]!r}")
        yield int(text)
        return
    world = World()
    try:
        with world.together():  # an error in one rank ends all ranks
            yield world
    except (Error, StoppedError):
        if world.rank == 0:
            raise


def run_one(
    experiment: Experiment, output: ResultOutput, stop_at: Sequence[str] = (), ranks: int | World = 1
) -> None:
    """Run one experiment, write its folder, and show it.

    Args:
        experiment: what to run.
        output: where results go.
        stop_at: virtual times, such as 50us, at which the run pauses for inspection; they are multiplied by
            its time scale.
        ranks: processes that run the network in virtual time.

    Raises:
        SpecError: specs that do not fit together, or a target that cannot do what they say.
        RunError: the run failed, or has flows that did not finish.
        StoppedError: it was interrupted.
    """
    output.check()
    first = isinstance(ranks, int) or ranks.rank == 0
    display = Display(sys.stderr if first else None)
    on_pause = None
    if stop_at:
        # only breakpoints need a server: the callback of let_inspect serves the switches over P4Runtime
        from tailrace.sim.pause import STANDARD_INPUT, Lines, let_inspect

        on_pause = let_inspect(display.say, Lines(STANDARD_INPUT).wait)
    with interruptible():
        result = api.run(
            experiment,
            out=output.folder,
            pcap=output.pcap,
            ranks=ranks,
            stop_at=stop_at,
            at_stop=on_pause,
            progress=sys.stderr,
        )
    if not first:
        return
    output.show(make_table(comparison_groups([result])), to_json(result.summary))
    display.say(f"results: {output.folder}")
    _judge([result], [], display)


def run_study(
    study: Callable[..., Results],
    *what: Any,
    output: ResultOutput,
    axes: Sequence[str] = (),
    compared: str = "",
    **settings: Any,
) -> None:
    """Run several experiments, write their folder, show the table, and report problems of each run.

    Args:
        study: api.compare, repeat or sweep.
        what: positional arguments of `study`: the experiment, and the axes or schemes.
        output: where results go.
        axes: the keys that a sweep varies.
        compared: the file or preset of a comparison; empty if there is none.
        settings: keyword arguments of `study`.

    Raises:
        SpecError: specs that do not fit together, a target that cannot do what they say, or a cluster that
            cannot be reached.
        RunError: a run failed, or has flows that did not finish.
        StoppedError: it was interrupted.
    """
    output.check(*axes)
    draw_alone()
    display = Display(sys.stderr)
    with interruptible(RUNS_KEPT):
        done = study(*what, out=output.folder, progress=sys.stderr, **settings)
    output.show(done.table, to_json(done.document))
    if axes or not done.results:
        display.say(f"results: {output.folder}")
    else:
        _say_where(output.folder, display, compared)
    _judge(done.results, done.failed, display)


def _say_where(folder: Path, display: Display, compared: str) -> None:
    """Shows where the figure and the results are, and which commands may come next."""
    from tailrace.report.figures.beside import files_of

    # after `make run` the command is not on the user's PATH
    in_environment = Path(sys.executable).parent / PROGRAM
    on_path = shutil.which(PROGRAM) is not None
    here = Path.cwd()
    nearby = in_environment.relative_to(here) if in_environment.is_relative_to(here) else in_environment
    name = PROGRAM if on_path or not in_environment.exists() else str(nearby)
    figure = files_of(folder, FIGURE)[-1]
    if figure.exists():
        display.say(f"figure: {figure}")
    display.say(f"results: {folder}")
    display.say("next:")
    # the name of a folder may look like an option
    shown = f"./{folder}" if str(folder).startswith("-") else str(folder)
    commands = [
        (("report", shown), f"all of it on one page: {folder / PAGE}"),
        (("schemes",), "what can be compared, with all parameters"),
    ]
    if compared != _COMMON:
        commands.insert(1, (("compare", _COMMON, "--target", "virtual"), "every scheme on one network"))
    for arguments, what in commands:
        display.say(f"  {shlex.join((name, *arguments))}\n      {what}")


def open_prompt(experiment: Experiment, output: ResultOutput) -> None:
    """Bring the fabric up and give the user Mininet's prompt. The experiment's flows are sent when `traffic`
    is typed there; then the table is shown, and the folder of results written, as by `run_one`.

    Raises:
        SpecError: the target is virtual, which has no prompt, or the folder cannot be written.
        RunError: the fabric could not be brought up.
    """
    from tailrace.emulation.mininet import MininetBackend

    output.check()
    check_place(output.folder)
    display = Display(sys.stderr)
    target = choose_target(experiment.target, display)
    if target == "virtual":
        raise SpecError("--cli needs Mininet: target bmv2 or native")
    planned = plan(experiment, target)
    report_scale(planned, display)
    label = labels([experiment.scheme])[0]

    def keep(outcome: Outcome) -> None:
        # an error in one result must not end the fabric
        try:
            result = result_of(planned, outcome, label)
            # shown first, as writing may fail
            output.show(make_table(comparison_groups([result])), to_json(result.summary))
            sys.stdout.flush()
            with atomic_folder(output.folder) as folder:
                write_result(result, folder)
                set_aside(output.folder, {(ITSELF, result.summary.option_string)}, display.say)
            clear(output.folder)
            display.say(f"results: {output.folder}")
            for text in result.problems:
                display.warn(text)
        except Error as error:
            display.warn(str(error))

    captures = output.folder.absolute() / PCAP if output.pcap else None
    with interruptible("what `traffic` has measured is kept"):
        MininetBackend().prompt(structs.replace(planned.job, pcap_dir=captures), keep)


def _judge(results: Sequence[Result], failures: Sequence[str], display: Display) -> None:
    """Reports problems of the results; raises RunError unless all flows of all runs finished."""
    failed = list(failures)
    for result in results:
        for text in result.problems:
            display.warn(text)
        if not isinstance(result.summary.deadlock, UnsetType):
            failed.append(f"{result.case}, {result.label}: deadlocked")
        elif not result.complete:
            failed.append(f"{result.case}, {result.label}: flows did not finish")
    overloaded = [result.summary.time_scale for result in results if result.summary.overloaded]
    if overloaded:
        display.say(f"a larger --time-scale than {max(overloaded):g} gives the machine more time")
    if failed:
        raise RunError("; ".join(dict.fromkeys(failed)))


@contextmanager
def interruptible(kept: str = NOTHING_KEPT) -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into StoppedError, after the body has cleaned up. `kept`: the part of
    the message that says which results are kept.
    """
    try:
        with stoppable():
            yield
    except Interrupted as error:
        raise StoppedError(error.number, f"interrupted; {kept}") from None
