# SPDX-License-Identifier: Apache-2.0
"""The result of one run, its place on disk, and the document of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.experiments.results.events import read_events, write_events
from tailrace.experiments.results.gaps import Gaps, read_gaps, write_gaps
from tailrace.experiments.results.rows import FlowRow, measured_rows, read_rows, write_rows
from tailrace.experiments.results.summary import Summary
from tailrace.experiments.results.timelines import NO_TIMELINES, Timelines, read_timelines, write_timelines
from tailrace.p4rt.events import Event
from tailrace.words.errors import FileError
from tailrace.words.files import read_bytes

SUMMARY = "summary.json"
FLOWS = "flows.parquet"
COMPARISON = "comparison.json"


@dataclass(frozen=True, slots=True)
class Result:
    """One run: its case (`clean` or the faults' names), its scheme's label, and what it measured."""

    case: str
    label: str
    summary: Summary
    rows: tuple[FlowRow, ...]
    timelines: Timelines = NO_TIMELINES
    events: tuple[Event, ...] = ()
    gaps: Gaps | None = None

    @property
    def complete(self) -> bool:
        """Whether every flow finished."""
        return self.summary.completed == self.summary.flows

    @property
    def p99_ns(self) -> int | None:
        """The 99th percentile of the completion times of the finished flows; None where none finished."""
        figures = self.summary.fct_ns
        return None if isinstance(figures, UnsetType) else figures.p99


class Entry(msgspec.Struct, frozen=True):
    """One run within comparison.json. `p99_ratio` is its FCT p99 over that of the case's first scheme."""

    case: str
    label: str
    summary: Summary
    p99_ratio: float | UnsetType = UNSET


class Failure(msgspec.Struct, frozen=True):
    """A run that did not come to its end, and why."""

    case: str
    label: str
    reason: str


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True):
    """comparison.json: runs in the order of cases and schemes, and the runs that failed."""

    runs: tuple[Entry, ...]
    failed: tuple[Failure, ...] = ()


def p99_ratio(result: Result, results: Sequence[Result], first: str) -> float | None:
    """The run's p99 over that of scheme `first` in the same case; None where either has unfinished flows.

    The slowest flows are those that did not finish, so a percentile of the others would flatter the run.
    """
    base = next((other for other in results if other.case == result.case and other.label == first), None)
    if base is None or not (base.complete and result.complete):
        return None
    if base.p99_ns is None or result.p99_ns is None:
        return None
    return result.p99_ns / base.p99_ns


def comparison(results: Sequence[Result], first: str, failed: Sequence[Failure]) -> Comparison:
    """The document of a comparison, with ratios against the scheme labelled `first`."""
    entries = []
    for result in results:
        ratio = p99_ratio(result, results, first)
        entries.append(Entry(result.case, result.label, result.summary, UNSET if ratio is None else ratio))
    return Comparison(tuple(entries), tuple(failed))


def to_json(document: msgspec.Struct) -> str:
    """The document as indented JSON with a newline at the end; unset keys are absent."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def write_result(result: Result, folder: Path) -> None:
    """Write summary.json, flows.parquet and what else there is into a folder, made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUMMARY).write_text(to_json(result.summary), "utf-8")
    write_rows(result.rows, folder / FLOWS, result.summary.unobserved or ())
    write_timelines(result.timelines, folder)
    write_events(result.events, folder)
    write_gaps(result.gaps, folder)


def max_fct_ns(results: Sequence[Result]) -> int:
    """The longest completion time of all measured flows that finished; 0 where none did."""
    return max((row.fct_ns or 0 for result in results for row in measured_rows(result.rows)), default=0)


def read_result(folder: Path, *, case: str, label: str) -> Result:
    """What `write_result` wrote into a folder.

    Raises:
        FileError: a file is missing, or is not what was written.
    """
    return Result(
        case,
        label,
        read_summary(folder / SUMMARY),
        read_rows(folder / FLOWS),
        read_timelines(folder),
        read_events(folder),
        read_gaps(folder),
    )


def read_summary(path: Path) -> Summary:
    """The summary in a file.

    Raises:
        FileError: it cannot be read, or is no summary.
    """
    try:
        return msgspec.json.decode(read_bytes(path), type=Summary)
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(path, "", f"no summary of a run: {error}") from error


def problems(result: Result) -> list[str]:
    """What a reader must know before trusting the run: unfinished flows, an overloaded machine."""
    where = f"{result.case}, {result.label}"
    found = []
    if not result.complete:
        missing = result.summary.flows - result.summary.completed
        found.append(f"{where}: {missing} of {result.summary.flows} flows did not finish")
    if result.summary.overloaded:
        found.append(f"{where}: overloaded: {'; '.join(result.summary.overload_reasons)}")
    return found
