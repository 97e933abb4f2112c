# SPDX-License-Identifier: Apache-2.0
"""Runs a figure or table of a paper, and judges its claims.

OUT/runs/KEY/                    the runs, which figures share
OUT/SCALE/NAME/result.json       metrics, claims, assumptions (document.py)
OUT/SCALE/NAME/NAME.svg          the figure
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tailrace.experiments.paper.claims.claims import judge
from tailrace.experiments.paper.document import RESULT, Cell, Curve, Document
from tailrace.experiments.paper.grid import Bar, bars
from tailrace.experiments.paper.measure.endpoints import endpoint_values, path_values
from tailrace.experiments.paper.measure.gap_curves import gap_curves
from tailrace.experiments.paper.measure.memory import lines, memory_values, occupancy_values
from tailrace.experiments.paper.measure.metrics import measure, metric
from tailrace.experiments.paper.measure.sizes import by_size
from tailrace.experiments.paper.model import FOLDER, LINES, PaperFile, read_paper
from tailrace.experiments.paper.tune import choose
from tailrace.experiments.plan.experiment_file import SCALES
from tailrace.experiments.results.result import Result, to_json
from tailrace.experiments.results.staging import staged
from tailrace.experiments.run.pool import Ends, Where, run_all
from tailrace.experiments.run.progress import Display
from tailrace.experiments.run.run import installed_version
from tailrace.experiments.run.task import Failed
from tailrace.words import SpecError
from tailrace.words.schema import KeyProblemError, given, in_file
from tailrace.words.suggest import unknown
from tailrace.words.units import parse_time_ns


def check_scale(scale: str) -> None:
    """Raises SpecError where there is no such scale."""
    if scale not in SCALES:
        raise SpecError(f"--scale: {unknown(scale, SCALES)}")


def prepare(names: Sequence[str], scale: str) -> list[tuple[PaperFile, list[Bar]]]:
    """The files with what each is to run: everything is checked before anything runs.

    Raises:
        FileError: a file is not as it should be, or words in it cannot be used.
    """
    found = []
    for name in names:
        file = read_paper(name)
        try:
            for each in file.metrics:
                metric(each)
            found.append((file, bars(file, scale) if file.kind == "runs" else []))
        except KeyProblemError as error:
            raise in_file(FOLDER / f"{name}.toml", error) from error
    return found


def run_paper(
    name: str,
    file: PaperFile,
    planned: Sequence[Bar],
    scale: str,
    out: Path,
    where: Where,
    display: Display,
    *,
    again: bool = False,
) -> Document:
    """Run a figure or table, and write what came of it below `out`; `again` also what was finished before.

    Raises:
        SpecError: bad words, or a folder that cannot be written.
    """
    tasks = [task for bar in planned for each in bar.tasks.values() for task in each]
    ends = run_all(tasks, out, where, display, again=again) if tasks else {}
    from tailrace.experiments.paper.show.charts import draw_document  # only who draws waits for matplotlib

    document = make_document(name, file, planned, scale, ends)
    with staged(out / scale / name) as folder:
        (folder / RESULT).write_text(to_json(document), "utf-8")
        draw_document(document, folder)
    return document


def make_document(name: str, file: PaperFile, planned: Sequence[Bar], scale: str, ends: Ends) -> Document:
    """What the ends of the tasks say about a figure or table."""
    size = file.scale.of(scale)
    if file.kind == "runs":
        cells, curves = _with_curves(file, planned, *_measured(planned, ends), ends)
    else:
        cells, curves = _computed(file)
    cases = {case.name: case.title for case in file.cases(scale)}
    cases |= {panel.name: panel.title for panel in file.panel}
    values = {(cell.case, cell.label): cell.metrics for cell in cells}
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
        command=f"tailrace paper {name} --scale {scale}",
        version=installed_version(),
        seeds=tuple(size.seeds) if planned else (),
        setting=_setting(file, scale),
        cases=cases,
        axes={option: tuple(size.values[option]) for option in file.grid.options} if file.grid else {},
        axis_titles=file.grid.titles if file.grid else {},
        drawn=tuple(file.drawn),
        metrics=tuple(file.metrics),
        assumptions=tuple(file.assumptions),
        reductions=tuple(size.reductions),
        cells=cells,
        curves=curves,
        claims=judge(file.claims(scale), values, list(cases) or [""], scale),
        failed=_failures(planned, ends),
    )


def _setting(file: PaperFile, scale: str) -> dict[str, str]:
    """What all runs of a file have in common, and by `case: key` what a case changes."""
    common = given(file.experiment) | given(file.scale.of(scale).experiment)
    found = {key: _text(value) for key, value in common.items()}
    for case in file.cases(scale):
        changes = given(case.experiment) | given(case.of(scale))
        found |= {f"{case.name}: {key}": _text(value) for key, value in changes.items()}
    return found


def _text(value: object) -> str:
    """As a file of an experiment has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _measured(planned: Sequence[Bar], ends: Ends) -> tuple[tuple[Cell, ...], tuple[Curve, ...]]:
    """The metrics of every scheme in every case, and the curves of its searches."""
    cells, curves = [], []
    for bar in planned:
        metrics = {value: _metrics(bar, value, ends) for value in bar.tasks}
        if bar.tune is None:
            cells.append(_cell(bar, "", metrics[""]))
            continue
        chosen = choose(bar.tune, metrics)
        times = [(value, found) for value, found in metrics.items() if "fct_mean" in found]
        curves.append(
            Curve(
                bar.case,
                bar.label,
                tuple(float(parse_time_ns(value)) for value, _ in times),
                tuple(found["fct_mean"] for _, found in times),
            )
        )
        if chosen is None:
            cells.append(Cell(bar.case, bar.label, {}, note="no run came to its end"))
            continue
        with_value = {**metrics[chosen.value], bar.tune.option: float(parse_time_ns(chosen.value))}
        cells.append(_cell(bar, chosen.value, with_value, chosen.note))
    return tuple(cells), tuple(curves)


def _with_curves(
    file: PaperFile, planned: Sequence[Bar], cells: tuple[Cell, ...], searches: tuple[Curve, ...], ends: Ends
) -> tuple[tuple[Cell, ...], tuple[Curve, ...]]:
    """The same with what a chart of lines shows."""
    if file.chart not in LINES:
        return cells, searches
    runs = [_results(bar, "", ends) for bar in planned]
    return by_size(cells, runs) if file.chart == "sizes" else (cells, gap_curves(cells, runs))


def _metrics(bar: Bar, value: str, ends: Ends) -> dict[str, float]:
    """The metrics of the runs with one value; none where a run failed."""
    results = _results(bar, value, ends)
    return measure(results) if results else {}


def _results(bar: Bar, value: str, ends: Ends) -> list[Result]:
    """The runs with one value, one a seed; none where a run failed."""
    found = [ends[task.key] for task in bar.tasks[value]]
    results = [end for end in found if isinstance(end, Result)]
    return results if len(results) == len(found) else []


def _cell(bar: Bar, value: str, metrics: dict[str, float], note: str = "") -> Cell:
    shown = f"{bar.tune.option} {value}" if bar.tune else ""
    return Cell(bar.case, bar.label, metrics, shown, note, tuple(str(task.out) for task in bar.tasks[value]))


def _computed(file: PaperFile) -> tuple[tuple[Cell, ...], tuple[Curve, ...]]:
    """What no run is needed for."""
    curves: tuple[Curve, ...] = ()
    if file.kind == "memory":
        values = memory_values(file)
        curves = tuple(
            Curve(panel.name, line.label, tuple(map(float, line.points)), tuple(line.points.values()))
            for panel in file.panel
            for line in lines(panel)
        )
    elif file.kind == "occupancy":
        values = occupancy_values()
    elif file.kind == "endpoints":
        values, curves = endpoint_values(file)
    else:
        values = path_values(file)
    return tuple(Cell(case, label, found) for (case, label), found in values.items()), curves


def _failures(planned: Sequence[Bar], ends: Ends) -> tuple[str, ...]:
    """Runs that failed, and runs in which flows did not finish."""
    found = []
    for bar in planned:
        for value, tasks in bar.tasks.items():
            where = " ".join(filter(None, (bar.case, bar.label, value)))
            for task in tasks:
                end = ends[task.key]
                if isinstance(end, Failed):
                    found.append(f"{where}: {end.reason}")
                elif not end.complete:
                    missing = end.summary.flows - end.summary.completed
                    found.append(f"{where}: {missing} of {end.summary.flows} flows did not finish")
    return tuple(dict.fromkeys(found))
