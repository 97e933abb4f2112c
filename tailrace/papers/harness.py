# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments of a figure or table of a paper, and grades its claims.

OUT/runs/KEY/                    the runs; a run that several figures need is stored once
OUT/SCALE/NAME/result.json       metrics, claims, assumptions (document.py)
OUT/SCALE/NAME/NAME.svg          the figure

A case is one setting in which a figure compares schemes, such as one workload in one network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import UnsetType

from tailrace.experiments.plan.axes import CASE, SCHEME
from tailrace.experiments.plan.experiment_file import SCALES
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.papers.beside import has_clone, in_folder, put_beside, read_theirs, recorded
from tailrace.papers.claims.claims import OfSeeds, judge
from tailrace.papers.document import OWN_BASE, RESULT, Cell, Cost, Curve, Document
from tailrace.papers.grid import VALUE, paper_grid, schemes
from tailrace.papers.measure.endpoints import endpoint_values, path_values
from tailrace.papers.measure.gap_curves import gap_curves
from tailrace.papers.measure.memory import memory_values, occupancy_values
from tailrace.papers.measure.sizes import TITLES, by_size
from tailrace.papers.measure.warm_up import accumulating, warm_up_curves
from tailrace.papers.model import FOLDER, LINES, PaperFile, Tune, read_paper, with_seeds
from tailrace.papers.tails import P99, flows_by_class, shown_metric
from tailrace.papers.tune import choose
from tailrace.results.atomic_folder import atomic_folder, refuse_links
from tailrace.results.estimates import SeedValues, ratio, seed_values, why_none
from tailrace.results.metrics import CLASS, measure, metric
from tailrace.results.result import Result, to_json
from tailrace.results.results import Results, Run
from tailrace.results.statistics import P99_FLOWS, tail_note
from tailrace.spec import SpecError
from tailrace.spec.schema import KeyProblemError, given, in_file
from tailrace.spec.suggest import unknown
from tailrace.spec.units import parse_time_ns
from tailrace.spec.version import VERSION
from tailrace.study.grid import Grid
from tailrace.study.pool import TaskOutcomes, Where, run_all
from tailrace.study.progress import Display
from tailrace.study.store.reuse import run_stored, store_writer
from tailrace.study.store.store import Store, usual_folder
from tailrace.study.task import Task

_CURVES: Mapping[str, Callable[[Sequence[Cell], Sequence[Sequence[Result]]], tuple[Curve, ...]]] = {
    "gaps": gap_curves,
    "warm-up": warm_up_curves,
}
"""The curves of line charts that need no single flows, by chart."""


def check_scale(scale: str) -> None:
    """Raises SpecError if there is no such scale."""
    if scale not in SCALES:
        raise SpecError(f"--scale: {unknown(scale, SCALES)}")


def prepare(
    names: Sequence[str], scale: str, seeds: Sequence[int] = (), beside: Path | None = None
) -> list[tuple[PaperFile, Grid]]:
    """Reads files and makes the grid of each, so that all files are checked before the first run.

    Args:
        names: the names of the files.
        scale: one of SCALES.
        seeds: seeds that replace the files' seeds; empty: the files' seeds are used.
        beside: the folder of all peers (beside.py); files whose peer is not there have no runs.

    Raises:
        FileError: a file is invalid, or a spec in it cannot be used.
        SpecError: the folder `beside` has none of these files' peers.
    """
    results = []
    for name in names:
        file = read_paper(name)
        if seeds and file.kind == "runs":
            file = with_seeds(file, scale, seeds)
        try:
            for each in file.metrics:
                metric(each)
            runs = has_clone(file.beside, beside) if file.beside else file.kind == "runs"
            results.append((file, paper_grid(in_folder(file, beside), scale) if runs else Grid({}, ())))
        except KeyProblemError as error:
            raise in_file(FOLDER / f"{name}.toml", error) from error
    if beside is not None and not any(file.beside and grid.runs for file, grid in results):
        raise SpecError(f"--beside: {beside}: expected clones of the peers of {', '.join(names)}")
    return results


def run_paper(
    name: str,
    file: PaperFile,
    grid: Grid,
    scale: str,
    out: Path | None,
    where: Where,
    display: Display,
    *,
    again: bool = False,
    store: Store | None = None,
    beside: Path | None = None,
) -> Document:
    """Runs the experiments of a figure or table, and writes its document below `out`; None: writes no file.

    Finished runs are not repeated unless `again` is True. Runs in `store` are used instead of new runs, and
    new runs are added to `store`. Runs beside a peer are not, as their inputs are not; without the peer the
    document is the stored one.

    Raises:
        SpecError: invalid specs, or a folder that cannot be written.
        FileError: the peer's output cannot be read.
    """
    if out is not None:
        refuse_links(out, [Path(scale, name)])
    theirs, document = {}, None
    if (peer := file.beside) is not None:
        pages, store = usual_folder() if store is None else store.folder, None
        if beside is not None and grid.runs:
            theirs = read_theirs(name, file, peer, scale, beside)
        elif (document := recorded(name, pages)) is None:
            display.say(f"{name}: no recorded numbers; --beside FOLDER takes those of the peer")
    if document is None:
        outcomes, kept = _outcomes(file, grid.tasks, scale, store, out, where, display, again=again)
        results = grid.results(outcomes)
        document = make_document(name, file, results, scale, kept)
        document = put_beside(document, results, peer, theirs) if peer is not None and theirs else document
    if out is not None:
        with atomic_folder(out / scale / name) as folder:
            (folder / RESULT).write_text(to_json(document), "utf-8")
    return document


def _outcomes(
    file: PaperFile,
    tasks: Sequence[Task],
    scale: str,
    store: Store | None,
    out: Path | None,
    where: Where,
    display: Display,
    *,
    again: bool,
) -> tuple[TaskOutcomes, str]:
    """The outcomes of the tasks, and a remark on stored runs that were made by earlier code."""
    if store is not None and out is not None and not file.needs_flows:
        return run_stored(tasks, store, out, where, display, again=again, needs=file.needs(scale))
    on_result = None if store is None else store_writer(store, display)
    return run_all(tasks, out, where, display, again=again, on_result=on_result) if tasks else {}, ""


def make_document(name: str, file: PaperFile, results: Results, scale: str, kept: str = "") -> Document:
    """The document of a figure or table from its results; `kept` is the remark on stored runs."""
    at_scale = file.scale.of(scale)
    if file.kind == "runs":
        tunes = {scheme.label: scheme.tune for scheme in schemes(file, at_scale)}
        measured, curves = _with_curves(file, *_measured(results, tunes))
    else:
        measured, curves = _computed(file)
    flows = flows_by_class([each.results for each in measured])
    metrics = tuple(dict.fromkeys(shown_metric(each, flows) for each in file.metrics))
    drawn = tuple(dict.fromkeys(shown_metric(each, flows) for each in file.drawn))
    measures = {(each.cell.case, each.cell.label): each.measures for each in measured}
    base_of = file.bases
    bases = [measures.get((each.cell.case, base_of.get(each.cell.label, "")), {}) for each in measured]
    cells = tuple(
        each.shown(metrics, drawn or metrics, base) for each, base in zip(measured, bases, strict=True)
    )
    cases = {case.name: case.title for case in file.cases(scale)}
    cases |= {panel.name: panel.title for panel in file.panel}
    named = {(each.cell.case, each.cell.label): each.named(flows) for each in measured}
    values = {key: {name: value.value for name, value in by_name.items()} for key, by_name in named.items()}
    seeds = at_scale.each_seed if results.runs else ()
    return Document(
        name=name,
        paper=file.paper,
        figure=file.figure,
        title=file.title,
        source=file.source,
        about=file.about,
        kind=file.kind,
        chart=file.chart,
        scale=scale,
        command=f"tailrace paper {name} --scale {scale}" + _other_seeds(name, scale, seeds),
        version=VERSION,
        seeds=seeds,
        setting=_setting(file, scale),
        cases=cases,
        axes={option: tuple(at_scale.values[option]) for option in file.grid.options} if file.grid else {},
        axis_titles=file.grid.titles if file.grid else {},
        drawn=drawn,
        base=file.base or (OWN_BASE if base_of else ""),
        rows=file.rows,
        metrics=metrics,
        assumptions=tuple(file.assumptions),
        reductions=tuple(at_scale.reductions),
        cells=cells,
        curves=curves,
        claims=judge(
            file.claims(scale),
            values,
            list(cases) or [""],
            scale,
            OfSeeds(named, len(seeds)) if seeds else None,
        ),
        failed=_failures(results),
        notes=(*_notes(file, flows, seeds, curves), *_unsettled(measured)),
        cost=_cost(results.results),
        kept=kept,
    )


def _cost(results: Sequence[Result]) -> Cost | None:
    """The cost of runs; None if the cost of any run is unknown."""
    summaries = [result.summary for result in results]
    cpu_s = [each.cpu_s for each in summaries if not isinstance(each.cpu_s, UnsetType)]
    if not summaries or len(cpu_s) < len(summaries):
        return None
    memory = [each.memory_bytes for each in summaries if not isinstance(each.memory_bytes, UnsetType)]
    machines = [each.machine for each in summaries if not isinstance(each.machine, UnsetType)]
    return Cost(len(summaries), sum(cpu_s), max(memory, default=0), tuple(dict.fromkeys(machines)))


def _other_seeds(name: str, scale: str, seeds: Sequence[int]) -> str:
    """The command-line option for these seeds; empty if the file has the same seeds."""
    if not seeds or read_paper(name).scale.of(scale).each_seed == tuple(seeds):
        return ""
    return f" --seed {seeds_text(seeds)}"


def _notes(
    file: PaperFile, flows: Mapping[str, int], seeds: Sequence[int], curves: Sequence[Curve]
) -> Iterator[str]:
    """Remarks that apply to all numbers of a figure."""
    expressions = " ".join((*file.metrics, *(claim.value for claim in file.claim)))
    for name in P99 if flows else ():
        for flow_class, count in flows.items():
            full_name = f"{name}{CLASS}{flow_class}" if flow_class else name
            used = full_name in expressions if flow_class else re.search(rf"{name}(?!{CLASS})", expressions)
            if used and shown_metric(full_name, flows) != full_name:
                of_class = f", {flow_class}" if flow_class else ""
                yield f"{metric(name).title}{of_class}: {tail_note(count)}." + " So it is in claims." * bool(
                    file.claim
                )
    if file.chart == "sizes":
        for title in dict.fromkeys(curve.panel.rpartition(": ")[2] for curve in curves):
            if title not in (TITLES[50], TITLES[99]):
                yield f"By size: the {title} instead of a p99, which takes {P99_FLOWS:,} flows a range."
    if len(seeds) > 1:
        why = why_none(len(seeds))
        brackets = "In brackets: 95 % intervals over the seeds; percentiles are means of each seed's own."
        yield f"{why[0].upper()}{why[1:]}." if why else brackets


def _unsettled(measured: Sequence[_MeasuredCell]) -> Iterator[str]:
    """The remark that names the runs without a steady state."""
    named = accumulating([each.cell for each in measured], [each.results for each in measured])
    if named:
        yield f"No steady state, as flows accumulate or slowdowns grow: {', '.join(named)}."


def _setting(file: PaperFile, scale: str) -> dict[str, str]:
    """The settings that all runs share, by key; and the settings that a case changes, by `case: key`."""
    shared = given(file.experiment) | given(file.scale.of(scale).experiment)
    texts = {key: _text(value) for key, value in shared.items()}
    for case in file.cases(scale):
        changes = given(case.experiment) | given(case.of(scale))
        texts |= {f"{case.name}: {key}": _text(value) for key, value in changes.items()}
    return texts


def _text(value: object) -> str:
    """A setting as text, as in an experiment file."""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@dataclass(frozen=True, slots=True)
class _MeasuredCell:
    """A cell without its metrics, the metrics' values over seeds, and the cell's runs."""

    cell: Cell
    measures: Mapping[str, SeedValues]
    results: Sequence[Result] = ()

    def shown(self, metrics: Sequence[str], drawn: Sequence[str], base: Mapping[str, SeedValues]) -> Cell:
        """The cell with all its metrics, intervals for `metrics`, and ratios to the base for `drawn`."""
        several = [name for name in metrics if name in self.measures and len(self.results) > 1]
        intervals = {name: ends for name in several if (ends := self.measures[name].estimate().ends)}
        pairs = [(index, index) for index in range(len(self.results))]  # both have the same seeds, in order
        ratios = {
            name: each.numbers
            for name in drawn
            if (each := ratio(self.measures.get(name), base.get(name), pairs)) is not None
        }
        values = {name: seeds.value for name, seeds in self.measures.items()}
        transports = {result.summary.transport or "" for result in self.results}  # not set: real time
        transport = ", ".join(sorted(transports))
        return msgspec.structs.replace(
            self.cell, metrics=values, intervals=intervals, ratios=ratios, transport=transport
        )

    def named(self, flows: Mapping[str, int]) -> dict[str, SeedValues]:
        """The metrics by the names that claims use; with few flows a p99 has the value of another tail."""
        return {
            name: self.measures[other]
            for name in self.measures
            if (other := shown_metric(name, flows)) in self.measures
        }


def _measured(
    results: Results, tunes: Mapping[str, Tune | None]
) -> tuple[list[_MeasuredCell], tuple[Curve, ...]]:
    """The metrics of every scheme in every case, and the curves of its searches."""
    runs_by_cell: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in results.runs:
        case, label, value = (str(run.settings[key]) for key in (CASE, SCHEME, VALUE))
        runs_by_cell.setdefault((case, label), {}).setdefault(value, []).append(run)
    cells, curves = [], []
    for (case, label), by_value in runs_by_cell.items():
        complete = {value: _results_of(runs) for value, runs in by_value.items()}
        measured = {
            value: seed_values([measure(result) for result in results_of_value])
            for value, results_of_value in complete.items()
        }
        tune = tunes[label]
        if tune is None:
            cell = Cell(case, label, {}, runs=_folders(by_value[""]))
            cells.append(_MeasuredCell(cell, measured[""], complete[""]))
            continue
        metrics = {
            value: {name: seeds.value for name, seeds in by_name.items()}
            for value, by_name in measured.items()
        }
        mean_fct = {value: by_name["fct_mean"] for value, by_name in metrics.items() if "fct_mean" in by_name}
        x = tuple(float(parse_time_ns(value)) for value in mean_fct)
        curves.append(Curve(case, label, x, tuple(mean_fct.values())))
        chosen = choose(tune, metrics)
        if chosen is None:
            cells.append(_MeasuredCell(Cell(case, label, {}, note="no run came to its end"), {}))
            continue
        value = chosen.value
        option = {tune.option: SeedValues((float(parse_time_ns(value)),) * len(complete[value]))}
        shown = f"{tune.option} {value}"
        cell = Cell(case, label, {}, shown, chosen.note, _folders(by_value[value]))
        cells.append(_MeasuredCell(cell, {**measured[value], **option}, complete[value]))
    return cells, tuple(curves)


def _results_of(runs: Sequence[Run]) -> list[Result]:
    """The results of runs that differ only in their seeds; empty if a run failed."""
    results = [run.result for run in runs if run.result is not None]
    return results if len(results) == len(runs) else []


def _folders(runs: Sequence[Run]) -> tuple[str, ...]:
    return tuple(run.folder for run in runs)


def _with_curves(
    file: PaperFile, measured: list[_MeasuredCell], searches: tuple[Curve, ...]
) -> tuple[list[_MeasuredCell], tuple[Curve, ...]]:
    """The cells and the curves: for a line chart its curves, else the curves of searches."""
    if file.chart not in LINES:
        return measured, searches
    cells, runs = [each.cell for each in measured], [each.results for each in measured]
    if file.chart in _CURVES:
        return measured, _CURVES[file.chart](cells, runs)
    measures, curves = by_size(cells, runs)
    pairs = zip(measured, measures, strict=True)
    return [replace(each, measures={**each.measures, **sizes}) for each, sizes in pairs], curves


def _computed(file: PaperFile) -> tuple[list[_MeasuredCell], tuple[Curve, ...]]:
    """The cells and curves of a figure that is computed without runs."""
    curves: tuple[Curve, ...] = ()
    if file.kind == "memory":
        values, curves = memory_values(file)
    elif file.kind == "occupancy":
        values = occupancy_values()
    elif file.kind == "endpoints":
        values, curves = endpoint_values(file)
    else:
        values = path_values(file)
    cells = [
        _MeasuredCell(
            Cell(case, label, {}), {name: SeedValues((value,)) for name, value in row_values.items()}
        )
        for (case, label), row_values in values.items()
    ]
    return cells, curves


def _failures(results: Results) -> tuple[str, ...]:
    """Messages about runs that failed, and runs in which flows did not finish."""
    problems = []
    for run in results.runs:
        where = " ".join(filter(None, (str(run.settings[key]) for key in (CASE, SCHEME, VALUE))))
        if run.result is None:
            problems.append(f"{where}: {run.failed}")
        elif not run.result.complete:
            summary = run.result.summary
            missing = summary.flows - summary.completed
            problems.append(f"{where}: {missing} of {summary.flows} flows did not finish")
    return tuple(dict.fromkeys(problems))
