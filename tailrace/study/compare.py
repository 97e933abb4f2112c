# SPDX-License-Identifier: Apache-2.0
"""Several schemes on the same topology, workload and seeds, in a healthy network and with faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from tailrace.experiments.plan.experiment import Experiment, make
from tailrace.experiments.plan.plan import Plan, on_target, plan
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.experiments.plan.spec_list import CLEAN, case_name, folder_name, labels
from tailrace.p4rt import programs
from tailrace.p4rt.errors import ControllerError
from tailrace.results.comparison import (
    COMPARISON,
    ComparisonDocument,
    Failure,
    LeftOut,
    all_flows,
    comparison,
    within,
)
from tailrace.results.estimates import SummaryRow, comparison_groups, summarise
from tailrace.results.result import Result, read_result, read_struct, to_json, write_result
from tailrace.results.table import make_table, markdown
from tailrace.sim.job import REAL_TIME, check_real_time
from tailrace.sim.outcome import Backend, Report
from tailrace.spec import Error, SpecError
from tailrace.study.pool import Where, run_all
from tailrace.study.progress import Display
from tailrace.study.run import run
from tailrace.study.task import Failed, attempt, make_task

if TYPE_CHECKING:
    from arro3.core import Table

    from tailrace.tables.listing import Listing

TABLE = "comparison.md"


@dataclass(frozen=True, repr=False)
class Comparison:
    """What came of several schemes on the same traffic.

    With a seed every scheme sends the same flows and meets the same faults: they are drawn from the seed, the
    workload and the network alone, and never from the scheme. So runs of one seed may be compared in pairs.

    labels: of the schemes, in their order; ratios are against the first
    results: runs in the order of cases, schemes and seeds
    failed: runs that did not come to their end
    seeds: those asked for
    left_out: schemes that cannot run on the network
    command: a command line that runs it again; empty where none can say it
    """

    labels: tuple[str, ...]
    results: tuple[Result, ...]
    failed: tuple[Failure, ...] = ()
    seeds: tuple[int, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    command: str = ""

    @property
    def complete(self) -> bool:
        """Whether every run came to its end, and every flow in it."""
        return not self.failed and all(result.complete for result in self.results)

    def result(self, label: str, case: str = CLEAN, seed: int | None = None) -> Result:
        """The run of a scheme, by its label; `case`: with faults, their names joined by `+`.

        Raises:
            SpecError: there is none, or there are several with different seeds.
        """
        found = [result for result in self.results if (result.label, result.case) == (label, case)]
        found = [result for result in found if seed in (None, result.summary.seed)]
        if len(found) == 1:
            return found[0]
        if found:
            known = seeds_text([result.summary.seed for result in found])
            raise SpecError(f"results of {case}, {label} have the seeds {known}; expected one of them")
        known = "; ".join(dict.fromkeys(f"{result.case}, {result.label}" for result in self.results))
        of_seed = "" if seed is None else f" with seed {seed}"
        raise SpecError(f"no result of {case}, {label}{of_seed}; there are {known or 'none'}")

    def folder(self, result: Result) -> Path:
        """Where a result of it lies, below the folder of all."""
        return _folder(result.case, result.label, result.summary.seed, self.seeds)

    @property
    def flows(self) -> Table:
        """The flows of all runs in one Arrow table: Result.flows after the columns `case` and `label`, and of
        several seeds `seed`.
        """
        several = len(self.seeds) > 1
        return all_flows(
            [
                (
                    {"case": one.case, "label": one.label}
                    | ({"seed": str(one.summary.seed)} if several else {}),
                    one,
                )
                for one in self.results
            ]
        )

    @property
    def document(self) -> ComparisonDocument:
        """What comparison.json holds."""
        document = comparison(self.results, self.labels[0], self.failed, self.seeds, self._rows)
        return structs.replace(document, left_out=self.left_out, command=self.command)

    @cached_property
    def _rows(self) -> list[SummaryRow]:
        """A row for the runs of each scheme and case, over all seeds."""
        return summarise(comparison_groups(self.results), self.labels[0])

    @property
    def table(self) -> Listing:
        """What `tailrace compare` shows: ratios to the first scheme, if there is another."""
        first = self.labels[0] if len(self.labels) > 1 else None
        table = make_table([row.group for row in self._rows], first, self._rows)
        return replace(table, caption=(*table.caption, *map(str, self.left_out)))

    def markdown(self) -> str:
        """The table of `tailrace compare`, in Markdown."""
        return markdown(self.table)

    def _repr_markdown_(self) -> str:
        """How a notebook shows it."""
        return self.markdown()

    def __repr__(self) -> str:
        """One line: which schemes, and how many runs."""
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<Comparison of {', '.join(self.labels)}: {len(self.results)} runs{failed}>"


def plans(
    base: Experiment,
    schemes: Sequence[str],
    target: str,
    names: Sequence[str] = (),
    left_out: list[LeftOut] | None = None,
) -> list[tuple[str, Plan]]:
    """Label and plan of every run with the first seed: each scheme without faults, then each with them if
    there are any.

    A scheme that works over one transport only keeps that, whatever the others go over. `names` are labels to
    be used instead of those that follow from the words. What cannot run on the network is put into
    `left_out`.

    Raises:
        SpecError: words that do not fit together, or no scheme can run.
        ControllerError: no scheme's program is there.
    """
    base = on_target(base.each_seed()[0], target)
    made = [base if scheme == base.scheme else make({"scheme": scheme}, base) for scheme in schemes]
    cases: list[list[tuple[str, Plan]]] = [[], []] if base.faults else [[]]
    refused: list[tuple[str, Error]] = []
    for label, experiment in zip(names or labels(schemes), map(_over_its_own, made), strict=True):
        try:
            variants = (experiment.without("faults"), experiment)[: len(cases)]
            runnable = [_runnable(variant, target) for variant in variants]
        except (SpecError, ControllerError) as error:
            refused.append((label, error))
            continue
        for case, planned in zip(cases, runnable, strict=True):
            case.append((label, planned))
    reasons = [LeftOut(label, str(error)) for label, error in refused]
    if refused and (left_out is None or not cases[0]):
        if len({scheme.reason for scheme in reasons}) > 1:
            raise SpecError("; ".join(f"{scheme.label}: {scheme.reason}" for scheme in reasons))
        raise refused[0][1]
    if left_out is not None:
        left_out += reasons
    return [each for case in cases for each in case]


def _runnable(experiment: Experiment, target: str) -> Plan:
    """The plan of an experiment that all checks before a run let pass.

    Raises:
        SpecError, ControllerError: one does not.
    """
    planned = plan(experiment, target)
    programs.load(planned.job.scheme.program)
    if target in REAL_TIME:
        check_real_time(planned.job)
    return planned


def _over_its_own(experiment: Experiment) -> Experiment:
    """The experiment without a transport that its scheme cannot work over."""
    only, wanted = experiment.meant.scheme.only_transport, experiment.meant.transport
    if wanted is None or only in (None, wanted.name):
        return experiment
    return experiment.without("transport")


def compare(
    planned: Sequence[tuple[str, Plan]],
    backend: Backend,
    display: Display,
    pcap_dir: Path | None = None,
    seeds: Sequence[int] = (),
) -> Comparison:
    """Run one plan after the other, with every seed. A run that fails does not keep the others from running.

    With `pcap_dir`, links are captured to CASE/SCHEME below it, as results lie; without `seeds` each plan
    keeps its own.

    Raises:
        SpecError: the target cannot do what was asked for.
    """
    ends: list[tuple[str, str, int, Result | Failed]] = []
    for label, one in planned:
        case = case_name(one.experiment.faults)
        for seed in seeds or one.experiment.seeds:
            captures = None if pcap_dir is None else pcap_dir / _folder(case, label, seed, seeds)
            with display.run(" ".join(filter(None, (case, label, _of_seed(seed, seeds))))) as report:
                end = attempt(partial(_run, one, seed, backend, report, label, captures))
            if isinstance(end, Failed):
                display.warn(f"{label}: {end.reason}")
            ends.append((case, label, seed, end))
    return _ended(planned, ends, seeds)


def _run(
    planned: Plan, seed: int, backend: Backend, report: Report, label: str, pcap_dir: Path | None
) -> Result:
    """The result of a plan with a seed."""
    return run(_at(planned, seed), backend, report, label=label, pcap_dir=pcap_dir)


def _of_seed(seed: int, seeds: Sequence[int]) -> str:
    """What names a run beside those of other seeds."""
    return f"seed {seed}" if len(seeds) > 1 else ""


def _ended(
    planned: Sequence[tuple[str, Plan]],
    ends: Sequence[tuple[str, str, int, Result | Failed]],
    seeds: Sequence[int],
) -> Comparison:
    """The comparison of runs: case, label, seed and end of each.

    Raises:
        SpecError: no run came to its end, since none could be done.
    """
    results = tuple(end for *_, end in ends if isinstance(end, Result))
    bad = [(case, label, seed, end) for case, label, seed, end in ends if isinstance(end, Failed)]
    if bad and not results and all(end.bad_input for *_, end in bad):
        raise SpecError(bad[0][-1].reason)
    failed = tuple(
        Failure(case, label, ": ".join(filter(None, (_of_seed(seed, seeds), end.reason))))
        for case, label, seed, end in bad
    )
    return Comparison(tuple(dict.fromkeys(label for label, _ in planned)), results, failed, tuple(seeds))


def _at(planned: Plan, seed: int) -> Plan:
    """The plan of the same experiment with a seed."""
    if planned.experiment.seeds == (seed,):
        return planned
    return plan(structs.replace(planned.experiment, seeds=(seed,)), planned.target)


def _folder(case: str, label: str, seed: int, seeds: Sequence[int]) -> Path:
    """Where the result of a run lies: with a folder of its own for each of several seeds."""
    place = Path(case, folder_name(label))
    return place / f"seed={seed}" if len(seeds) > 1 else place


def compare_at_once(
    planned: Sequence[tuple[str, Plan]],
    workers: int,
    folder: Path | None,
    display: Display,
    seeds: Sequence[int] = (),
) -> Comparison:
    """The same with several runs at a time, in virtual time; results that `folder` has already stay.

    Raises:
        SpecError: the target is not virtual, or a result cannot be written.
    """
    tasks = [
        make_task(
            structs.replace(one.experiment, seeds=(seed,)),
            one.target,
            label=label,
            out=_folder(case_name(one.experiment.faults), label, seed, seeds),
        )
        for label, one in planned
        for seed in seeds or one.experiment.seeds
    ]
    ends = run_all(tasks, folder, Where(workers), display)
    labelled = [
        (task.case, task.label, task.experiment.seed, _labelled(ends[task.key], task.label)) for task in tasks
    ]
    return _ended(planned, labelled, seeds)


def _labelled(end: Result | Failed, label: str) -> Result | Failed:
    return replace(end, label=label) if isinstance(end, Result) else end


def write(done: Comparison, folder: Path) -> None:
    """Write CASE/SCHEME/{summary.json,flows.parquet}, comparison.json and table into a folder.

    Of several seeds each has a folder CASE/SCHEME/seed=N.
    """
    for result in done.results:
        write_result(result, folder / done.folder(result))
    (folder / COMPARISON).write_text(to_json(done.document), "utf-8")
    if done.results:
        (folder / TABLE).write_text(done.markdown(), "utf-8")


def open_comparison(folder: str | Path) -> Comparison:
    """What `tailrace compare` left in a folder.

    Raises:
        FileError: a file is missing, or is not what was written.
    """
    path = Path(folder) / COMPARISON
    found = read_struct(path, ComparisonDocument)
    results = tuple(
        read_result(
            within(
                path,
                f"runs[{number}]",
                str(_folder(entry.case, entry.label, entry.summary.seed, found.seeds)),
            ),
            case=entry.case,
            label=entry.label,
        )
        for number, entry in enumerate(found.runs)
    )
    labels = dict.fromkeys([one.label for one in found.runs] + [one.label for one in found.failed])
    return Comparison(tuple(labels), results, found.failed, found.seeds, found.left_out, found.command)
