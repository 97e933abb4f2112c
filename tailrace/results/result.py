# SPDX-License-Identifier: Apache-2.0
"""The result of one run, and how it is stored in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UnsetType

from tailrace.experiments.plan.spec_list import case_name, labels
from tailrace.hosts.frames.host import HostFrames
from tailrace.hosts.measured import Gaps
from tailrace.p4rt.events import Event
from tailrace.results.frames import ARRIVED, PINGS, ping_table, read_frames, write_frames
from tailrace.results.rows import FlowRow, flow_table, measured_rows, read_rows, write_rows
from tailrace.results.run_files import (
    EVENTS,
    GAPS,
    JOB,
    PATHS,
    QUEUES,
    RECORD,
    read_events,
    read_gaps,
    read_timelines,
    write_events,
    write_gaps,
    write_timelines,
)
from tailrace.results.summary import FORMAT, Summary
from tailrace.sim.job import Job, write_job
from tailrace.sim.pfc import waiting_line
from tailrace.sim.timelines import NO_TIMELINES, Timelines
from tailrace.spec.errors import FileError
from tailrace.spec.files import bytes_of, without_bom
from tailrace.spec.units import format_time

if TYPE_CHECKING:
    from arro3.core import Table

T = TypeVar("T")

SUMMARY = "summary.json"
FLOWS = "flows.parquet"
RUN_FILES = (SUMMARY, FLOWS, QUEUES, PATHS, RECORD, JOB, EVENTS, GAPS, PINGS, ARRIVED)
"""All files that a run may have in its folder, as patterns; a folder without SUMMARY contains no run."""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One run: its case (`clean` or the faults' names), its scheme's label, and its measurements.

    `frames` has what each host sent and received besides flows, by its name. `job` is the job of a run
    that has a record, or the file with it.
    A stored run has `metrics` but no rows; for other runs metrics are computed from the other fields.
    """

    case: str
    label: str
    summary: Summary
    rows: tuple[FlowRow, ...]
    timelines: Timelines = NO_TIMELINES
    events: tuple[Event, ...] = ()
    gaps: Gaps | None = None
    metrics: Mapping[str, float] | None = None
    frames: Mapping[str, HostFrames] = field(default_factory=dict)
    job: Job | Path | None = None

    @property
    def complete(self) -> bool:
        """Whether every flow finished."""
        return self.summary.completed == self.summary.flows

    @property
    def p99_ns(self) -> int | None:
        """The 99th percentile of the completion times of the finished flows; None if no flow finished."""
        fct_ns = self.summary.fct_ns
        return None if isinstance(fct_ns, UnsetType) else fct_ns.p99

    @property
    def flows(self) -> Table:
        """One row per flow, as in flows.parquet: an Arrow table, which polars, pandas and NumPy accept.

        Columns have the names of FlowRow's fields, except for `class`, the field `flow_class`. Times are in
        ns since the start of the traffic, and missing if the flow did not finish.
        """
        return flow_table(self.rows)

    @property
    def pings(self) -> Table:
        """One row per echo request, as in pings.parquet: src, dst, sequence, sent_ns, rtt_ns."""
        return ping_table(self.frames)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the run, one line each: a deadlock, unfinished flows, an overloaded machine."""
        problems = []
        if not isinstance(self.summary.deadlock, UnsetType):
            problems.append(f"{self.case}, {self.label}: deadlocked: {waiting_line(self.summary.deadlock)}")
        if not self.complete:
            missing = self.summary.flows - self.summary.completed
            problems.append(
                f"{self.case}, {self.label}: {missing} of {self.summary.flows} flows did not finish"
            )
        if self.summary.overloaded:
            reasons = "; ".join(self.summary.overload_reasons)
            problems.append(f"{self.case}, {self.label}: overloaded: {reasons}")
        return tuple(problems)

    def __repr__(self) -> str:
        """One line: case, label, finished flows and completion times."""
        times = self.summary.fct_ns
        fct = f", FCT mean {format_time(round(times.mean))}, p99 {format_time(times.p99)}" if times else ""
        flows = f"{self.summary.completed} of {self.summary.flows} flows"
        return f"<Result {self.case}, {self.label}: {flows}{fct}>"


def max_fct_ns(results: Sequence[Result]) -> int:
    """The longest completion time of all measured flows that finished; 0 without such flows."""
    return max((row.fct_ns or 0 for result in results for row in measured_rows(result.rows)), default=0)


def to_json(document: msgspec.Struct) -> str:
    """The document as indented JSON with a newline at the end; unset keys are absent."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def write_result(result: Result, folder: Path) -> None:
    """Writes summary.json, flows.parquet and the run's other files into a folder, creating it if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUMMARY).write_text(to_json(result.summary), "utf-8")
    write_rows(result.rows, folder / FLOWS)
    write_timelines(result.timelines, folder)
    if isinstance(result.job, Job):
        write_job(result.job, folder / JOB)
    write_events(result.events, folder)
    write_gaps(result.gaps, folder)
    write_frames(result.frames, folder)


def open_result(folder: str | Path) -> Result:
    """The result of a run that `tailrace run`, `compare` or `sweep` wrote into a folder.

    Raises:
        FileError: a file is missing or invalid.
    """
    result = read_result(Path(folder), case="", label="")
    summary = result.summary
    return replace(result, case=case_name(summary.faults), label=labels([summary.scheme])[0])


def read_result(folder: Path, *, case: str, label: str) -> Result:
    """Reads what `write_result` wrote into a folder.

    Raises:
        FileError: a file is missing or invalid.
    """
    summary = read_summary(folder / SUMMARY)
    rows, timelines = read_rows(folder / FLOWS), read_timelines(folder)
    recorded = set() if timelines.paths is None else set(timelines.paths.column("flow").to_pylist())
    if missing := sorted(recorded - {row.id for row in rows}):
        raise FileError(folder / PATHS, "", f"flow {missing[0]} is not in {FLOWS}")
    return Result(
        case,
        label,
        summary,
        rows,
        timelines,
        read_events(folder),
        read_gaps(folder),
        frames=read_frames(folder, summary.hosts),
        job=folder / JOB if (folder / JOB).exists() else None,
    )


def read_summary(path: Path) -> Summary:
    """The summary in a file.

    Raises:
        FileError: the file cannot be read, is not a summary, or has another format.
    """
    summary = read_struct(path, Summary, "no summary of a run")
    number = read_struct(path, Formatted).format
    if number != FORMAT:  # its numbers have another meaning
        raise FileError(
            path, "format", f"expected {FORMAT}, found {number}: run it again with this version of Tailrace"
        )
    return summary


class Formatted(msgspec.Struct):
    """The format of a summary; 0 for the first versions, which did not write it."""

    format: int = 0


def read_struct(path: Path, shape: type[T], otherwise: str = "not what tailrace writes") -> T:
    """The content of a JSON file as a struct of the type `shape`.

    Raises:
        FileError: the file cannot be read, or does not have this type; in the latter case the message begins
            with `otherwise`.
    """
    try:
        return msgspec.json.decode(without_bom(bytes_of(path)), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(path, "", f"{otherwise}: {error}") from error
