# SPDX-License-Identifier: Apache-2.0
"""The results of a grid of runs, and the folder in which they are stored.

results.json          axes, runs with their folders, summary rows, the command that repeats all runs
runs.parquet          one row per run: the values of the axes, and every metric that any run has
table.md              the table of `tailrace compare` and `tailrace sweep`
earlier/N/            the results of an earlier command, which are moved there before others replace them
FOLDER/summary.json   summary of a run; FOLDER also contains the run's other files (result.py)
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.experiments.plan.axes import SEED, Setting, label_of, run_name
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.experiments.plan.spec_list import case_name
from tailrace.results.atomic_folder import atomic_folder, refuse_links
from tailrace.results.estimates import Group, SummaryRow, summarise
from tailrace.results.metrics import measure
from tailrace.results.parquet import write_parquet
from tailrace.results.result import (
    RUN_FILES,
    SUMMARY,
    Result,
    read_result,
    read_struct,
    read_summary,
    to_json,
)
from tailrace.results.rows import SCHEMA, flow_values
from tailrace.results.summary import Summary
from tailrace.results.table import make_table
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.tables.arrow import INTEGER, NUMBER, TEXT, Columns
from tailrace.tables.arrow import make_table as make_arrow_table
from tailrace.tables.markdown import markdown

if TYPE_CHECKING:
    from arro3.core import DataType, Table

    from tailrace.tables.listing import Listing

RESULTS, RUNS, TABLE, FIGURE = "results.json", "runs.parquet", "table.md", "figure"
EARLIER = "earlier"
DRAWN = (
    *("comparison", "ratios", "sensitivity", "cdf", "slowdown-by-size", "order", "throughput", "imbalance"),
    *("queues", "longest-queues", "paths", "flow-throughput", "network"),
)
"""The kinds of figures that `tailrace plot` draws into a folder of results (report/kinds.py)."""

FIGURE_FILES = ("report.html", *(f"{name}.{suffix}" for name in DRAWN for suffix in ("pdf", "svg", "png")))
_OF_ALL = (RESULTS, RUNS, TABLE, f"{FIGURE}.svg", f"{FIGURE}.png")


ITSELF = "."
"""The folder of a run that is in the folder of the results itself, as `tailrace run` writes it."""


class LeftOut(msgspec.Struct, frozen=True):
    """A scheme that cannot run on the network, and why."""

    scheme: str
    reason: str

    def __str__(self) -> str:
        return f"{self.scheme} is left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a grid.

    settings: the run's value on each axis of the sweep
    folder: the folder of the run's files, relative to the folder of the results
    result: None if the run failed
    failed: why the run failed
    """

    settings: Mapping[str, Setting]
    folder: str
    result: Result | None = None
    failed: str = ""

    @property
    def name(self) -> str:
        """The run's settings on one line."""
        return run_name(self.settings)


@dataclass(frozen=True, repr=False)
class Results:
    """The results of `compare`, `repeat` and `sweep`.

    Runs with the same seed may be compared in pairs: flows and faults depend on the seed, the workload and
    the network, but not on the scheme.

    axes: the values of each axis; a comparison has `case` (faults, or `clean`), `scheme` and `seed`
    runs: in the order of the axes, of which the last varies fastest; each has `settings`, `folder`, `result`,
        `failed`
    first: the scheme to which ratios are relative; empty without ratios
    over_seeds: whether the table shows means over the seeds; otherwise it has a row for each seed
    left_out: schemes that cannot run on the network
    command: the command line that repeats all runs; empty if a single command cannot do that
    """

    axes: Mapping[str, tuple[Setting, ...]]
    runs: tuple[Run, ...]
    first: str = ""
    over_seeds: bool = True
    left_out: tuple[LeftOut, ...] = ()
    command: str = ""

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the runs that did not fail."""
        return tuple(run.result for run in self.runs if run.result is not None)

    @property
    def failed(self) -> tuple[str, ...]:
        """The failed runs and the reasons; runs that differ only in their seed share a line."""
        seeds: dict[tuple[str, str], list[int]] = {}
        for run in self.runs:
            if run.failed:
                rest = run_name({key: value for key, value in run.settings.items() if key != SEED})
                failed_seeds = seeds.setdefault((rest, run.failed), [])
                if len(self.axes.get(SEED, ())) > 1:
                    failed_seeds.append(int(run.settings[SEED]))
        return tuple(
            f"{' '.join(filter(None, (name, f'seed {seeds_text(numbers)}' if numbers else '')))}: {reason}"
            for (name, reason), numbers in seeds.items()
        )

    @property
    def complete(self) -> bool:
        """Whether no run failed, and every flow finished."""
        return all(run.result is not None and run.result.complete for run in self.runs)

    def result(self, **settings: Setting) -> Result:
        """The run with these settings, such as `scheme="ecmp", seed=2`.

        Axes with a single value may be omitted.

        Raises:
            SpecError: there is no such run, or there are several such runs.
        """
        matching = [
            run.result
            for run in self.runs
            if run.result is not None and all(run.settings.get(key) == settings[key] for key in settings)
        ]
        if len(matching) == 1:
            return matching[0]
        problem = f"{len(matching)} results" if matching else "no result"
        axes = "; ".join(f"{key}={','.join(map(str, values))}" for key, values in self.axes.items())
        raise SpecError(f"{problem} of {run_name(settings) or 'all runs'}; expected one run of {axes}")

    @property
    def flows(self) -> Table:
        """The flows of all runs in one Arrow table: a column per axis, then the columns of Result.flows."""
        rows = [
            (run.settings, row)
            for run in self.runs
            if run.result is not None
            for row in sorted(run.result.rows, key=lambda row: row.id)
        ]
        return self._table([settings for settings, _ in rows], flow_values([row for _, row in rows]), SCHEMA)

    @property
    def metrics(self) -> Table:
        """One row per run that did not fail: the value on each axis, and every metric that any run has."""
        rows = [(run.settings, measure(run.result)) for run in self.runs if run.result is not None]
        names = dict.fromkeys(name for _, metrics in rows for name in metrics if name not in self.axes)
        values = {name: [metrics.get(name) for _, metrics in rows] for name in names}
        return self._table([settings for settings, _ in rows], values, dict.fromkeys(names, NUMBER))

    def _table(
        self, settings: Sequence[Mapping[str, Setting]], values: dict[str, list[Any]], columns: Columns
    ) -> Table:
        """A table of these columns, after the axes, of which each row has the settings."""
        axes = {key: _column_type(each) for key, each in self.axes.items()}
        return make_arrow_table(
            values | {key: [row[key] for row in settings] for key in axes}, {**axes, **columns}
        )

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups of runs that differ only in their seeds, with their common settings."""
        over_seeds = self.over_seeds
        by_settings: dict[tuple[tuple[str, Setting], ...], list[Result]] = {}
        for run in self.runs:
            if run.result is not None:
                key = tuple(item for item in run.settings.items() if not (over_seeds and item[0] == SEED))
                by_settings.setdefault(key, []).append(run.result)
        return tuple(
            Group(dict(key), results[0].label, tuple(results)) for key, results in by_settings.items()
        )

    @cached_property
    def rows(self) -> list[SummaryRow]:
        """One row per group: means over the seeds, with 95 % intervals, and ratios to the first scheme."""
        return summarise(self.groups, self.first or None)

    @property
    def table(self) -> Listing:
        """The table that `tailrace compare` and `tailrace sweep` show."""
        table = make_table(self.groups, self.first or None, self.rows)
        return replace(table, caption=(*table.caption, *map(str, self.left_out)))

    def markdown(self) -> str:
        """The table in Markdown; empty if all runs failed."""
        return markdown(self.table) if self.results else ""

    def _repr_markdown_(self) -> str:
        """The representation in a notebook."""
        return self.markdown()

    def __repr__(self) -> str:
        """One line: the axes with several values, and the number of runs."""
        failed = sum(run.result is None for run in self.runs)
        more = f", {failed} failed" if failed else ""
        varied = [key for key, values in self.axes.items() if len(values) > 1]
        return f"<Results of {', '.join(varied) or 'one setting'}: {len(self.results)} runs{more}>"

    @property
    def document(self) -> ResultsDocument:
        """The content of results.json."""
        return ResultsDocument(
            axes=dict(self.axes),
            runs=tuple(map(_run_entry, self.runs)),
            rows=tuple(self.rows),
            first=self.first,
            over_seeds=self.over_seeds,
            left_out=self.left_out,
            command=self.command,
        )


class RunEntry(msgspec.Struct, frozen=True):
    """A run in results.json: its value on each axis, its folder, and its summary or why it failed."""

    settings: dict[str, Setting]
    folder: str
    summary: Summary | UnsetType = UNSET
    failed: str | UnsetType = UNSET


class ResultsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The content of results.json: see Results. `format` is its version."""

    format: int = 1
    axes: dict[str, tuple[Setting, ...]]
    runs: tuple[RunEntry, ...]
    rows: tuple[SummaryRow, ...] = ()
    first: str = ""
    over_seeds: bool = True
    left_out: tuple[LeftOut, ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError if a run's settings do not match the axes, or the format is not 1."""
        if self.format != 1:
            raise ValueError(f"format: expected 1, found {self.format}")
        for run in self.runs:
            if differing := sorted(self.axes.keys() ^ run.settings.keys()):
                raise ValueError(f"the run in {run.folder} has no value of {differing[0]}, or one too many")
            if SEED in run.settings and not isinstance(run.settings[SEED], int):
                raise ValueError(f"the run in {run.folder}: seed: expected a whole number")


def write_results(done: Results, folder: Path) -> None:
    """Writes results.json and the tables into a folder that already contains the runs.

    The files of an earlier command are removed, since a folder contains the results of one command.

    Raises:
        SpecError, RunError: the folder cannot be written.
    """
    clear(folder, {run.folder for run in done.runs})
    with atomic_folder(folder) as fresh:
        (fresh / RESULTS).write_text(to_json(done.document), "utf-8")
        if done.results:
            write_parquet(done.metrics, fresh / RUNS)
            (fresh / TABLE).write_text(done.markdown(), "utf-8")


def set_aside(folder: Path, staying: Set[tuple[str, object]], say: Callable[[str], None]) -> None:
    """Moves the results of an earlier command to a folder in EARLIER, and says so, unless all its runs stay.

    Runs that stay are in both folders. Only files that Tailrace writes are moved, and links are not followed.

    Args:
        folder: the folder of the results.
        staying: runs of the next command: the folder of each, and its summary's `task` or `option_string`.
        say: is called with one line.

    Raises:
        SpecError, RunError: a folder cannot be written.
    """
    listed = {run.folder: run.summary for run in _listed_runs(folder / RESULTS)}
    runs = {name: run for name, run in listed.items() if not isinstance(run, UnsetType)}
    with suppress(FileError):
        runs[ITSELF] = read_summary(folder / SUMMARY)
    same = {name for name, run in runs.items() if {(name, run.task), (name, run.option_string)} & staying}
    if len(same) == len(runs):
        return
    refuse_links(folder, [Path(EARLIER)])
    places = (folder / EARLIER / str(number) for number in itertools.count(1))
    place = next(path for path in places if not path.exists())
    with atomic_folder(place) as copy:
        for name in {ITSELF, *runs}:
            with suppress(FileError):
                source = folder if name == ITSELF else within(folder / RESULTS, "folder", name)
                _copy(source, copy / name, (*RUN_FILES, *FIGURE_FILES, *(_OF_ALL if name == ITSELF else ())))
    clear(folder, same)
    say(f"{folder}: results of an earlier command are in {place} now (runs: {len(runs)})")


def _copy(source: Path, target: Path, patterns: Iterable[str]) -> None:
    """Copies files of a folder, as hard links where possible: finished files are replaced, never changed."""
    if not os.path.isdir(source):  # noqa: PTH112 - a name may be too long
        return
    for path in (path for pattern in patterns for path in source.glob(pattern)):
        if path.is_file() and not path.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copy2(path, target / path.name)


def clear(folder: Path, kept: Collection[str] = (ITSELF,)) -> None:
    """Removes the results of an earlier command from a folder, except for the runs in the folders `kept`.

    Only files that Tailrace writes are removed, and links are not followed.

    Raises:
        SpecError: a file cannot be removed.
    """
    removed = False
    try:
        if ITSELF not in kept:
            removed = _clear_run(folder)
        for run in _listed_runs(folder / RESULTS):
            if run.folder not in kept:
                with suppress(FileError):
                    removed |= _clear_run(within(folder / RESULTS, "folder", run.folder), folder)
        for name in (*_OF_ALL, *(FIGURE_FILES if removed else ())):
            with suppress(IsADirectoryError):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise SpecError(f"{folder}: {error.strerror or error}") from error


def _listed_runs(path: Path) -> tuple[RunEntry, ...]:
    """The runs that a results.json lists; empty if the file cannot be read."""
    with suppress(FileError):
        return _document(path).runs
    return ()


def _clear_run(folder: Path, root: Path | None = None) -> bool:
    """Removes the files of a run, then empty folders below `root`; returns whether there was a run."""
    # the folder, and its parents below `root`
    parents = (
        () if root is None else (folder, *list(folder.parents)[: len(folder.relative_to(root).parts) - 1])
    )
    # os.path.isdir returns False for a name that is too long; Path.is_dir raises OSError
    is_folder = os.path.isdir(folder)  # noqa: PTH112
    if not is_folder or any(parent.is_symlink() for parent in parents):
        return False
    is_run = (folder / SUMMARY).exists()
    for pattern in (*RUN_FILES, *(FIGURE_FILES if is_run else ())):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
    for parent in parents:
        with suppress(OSError):
            parent.rmdir()
    return is_run


def open_results(folder: str | Path) -> Results:
    """The results that `tailrace compare`, `sweep`, or `run` with several seeds wrote into a folder.

    Raises:
        FileError: a file is missing or invalid.
    """
    path = Path(folder) / RESULTS
    document = _document(path)
    runs = tuple(_read_run(path, number, entry) for number, entry in enumerate(document.runs))
    return Results(
        document.axes, runs, document.first, document.over_seeds, document.left_out, document.command
    )


def _document(path: Path) -> ResultsDocument:
    return read_struct(path, ResultsDocument)


def _read_run(path: Path, number: int, entry: RunEntry) -> Run:
    if not isinstance(entry.failed, UnsetType):
        return Run(entry.settings, entry.folder, None, entry.failed)
    result = read_result(within(path, f"runs[{number}].folder", entry.folder), case="", label="")
    if entry.summary not in (UNSET, result.summary):
        problem = f"differs from that in {RESULTS}; expected the results of a single command"
        raise FileError(path.parent / entry.folder / SUMMARY, "", problem)
    case, label = case_name(result.summary.faults), label_of(entry.settings)
    return Run(entry.settings, entry.folder, replace(result, case=case, label=label))


def within(path: Path, key: str, name: str) -> Path:
    """The folder that a file names, relative to the folder of the file.

    Raises:
        FileError: the named folder is not below the folder of the file; or the named folder, or a folder
            between both, is a link.
    """
    relative = Path(name)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts or "\0" in name:
        raise FileError(path, key, f"expected the name of a folder within this one, found {name!r}")
    for part in (relative, *list(relative.parents)[:-1]):
        if os.path.islink(path.parent / part):  # noqa: PTH114 - a name may be too long
            raise FileError(path, key, f"{part} is a link, expected a folder")
    return path.parent / relative


def _run_entry(run: Run) -> RunEntry:
    summary = UNSET if run.result is None else run.result.summary
    return RunEntry(dict(run.settings), run.folder, summary, run.failed or UNSET)


def _column_type(values: Sequence[Setting]) -> DataType:
    """The Arrow type of an axis."""
    if all(isinstance(value, int) for value in values):
        return INTEGER
    return TEXT if any(isinstance(value, str) for value in values) else NUMBER
