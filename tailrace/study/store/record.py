# SPDX-License-Identifier: Apache-2.0
"""A finished run as it is stored: its specs, the code that ran it, and the measurements that pages need.

A record contains no flows, so the chart `sizes` (slowdown by flow size) needs the folders of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from tailrace.experiments.plan.identity import files_of, run_id, specs_of
from tailrace.hosts.gaps.histogram import MOST_BINS
from tailrace.hosts.measured import Gaps
from tailrace.results.metrics import measure, metrics, split_class
from tailrace.results.result import Result
from tailrace.results.summary import OF_THE_RUN_ITSELF, Summary
from tailrace.study.task import Task, code_of

MOST_CODES = 8
"""Maximum number of code hashes in each list of a record."""

_NOT_COMPARED = OF_THE_RUN_ITSELF | {"nics", "version", "p4_sha256", "plugins", "task", "words"}
"""Keys of a summary that describe how the run was executed; comparisons of results ignore them."""

_OF_BOTH = ("scheme", "topology", "seed", "target")
"""Keys that are both in the specs of a record and in its summary."""

_SHA256 = re.compile("[0-9a-f]{64}")

ShortHash = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", description="16 hexadecimal digits")]
_ShortHashes = Annotated[tuple[ShortHash, ...], Meta(max_length=MOST_CODES)]
_Count = Annotated[int, Meta(ge=0, le=1 << 62)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stored run, which is a row of a file (store.py).

    run: the run's id, a hash of the specs and the contents of their files (identity.py)
    specs: the specs of the experiment, without defaults
    files: the SHA-256 of each file that the specs name
    ran: hashes of code that gave this result, the oldest first
    differs: hashes of code that gave another result
    metrics: values by name; None: the metric was computed, but is not defined for the run
    gaps: the bins of gaps.parquet: a bin's lower edge in ns, its count, the next bin's lower edge, and so on
    """

    run: ShortHash
    specs: dict[str, Any]
    files: dict[str, Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]] = {}
    ran: Annotated[_ShortHashes, Meta(min_length=1)]
    differs: _ShortHashes = ()
    summary: Summary
    metrics: dict[str, float | None]
    gaps: Annotated[tuple[_Count, ...], Meta(max_length=2 * MOST_BINS)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError if fields contradict each other."""
        if self.run != run_id(self.specs, self.files):
            raise ValueError("`run` is not the id of its specs: expected an unchanged row")
        for name in _OF_BOTH:
            if self.specs.get(name) != getattr(self.summary, name):
                raise ValueError(f"summary.{name} differs from the specs")
        if not _SHA256.fullmatch(self.summary.trace_sha256 or ""):
            raise ValueError("summary.trace_sha256: expected 64 hexadecimal digits, of a run in virtual time")
        if not isinstance(self.gaps, UnsetType) and len(self.gaps) % 2:
            raise ValueError("gaps: expected pairs of numbers")

    @property
    def scheme(self) -> str:
        """The name of the run's scheme without options; the file of the run has this name."""
        return self.summary.scheme.partition(":")[0]

    @property
    def code(self) -> str:
        """The hash of the first code that gave this result."""
        return self.ran[0]

    @property
    def order(self) -> tuple[str, str, str, bytes, int, str]:
        """The key by which runs are sorted, so that similar specs are adjacent."""
        summary = self.summary
        specs = summary.scheme, summary.topology, summary.workload, without_seed(self.specs)
        return *specs, summary.seed, self.run

    @property
    def measured(self) -> dict[str, float]:
        """The metrics that have a value."""
        return {name: value for name, value in self.metrics.items() if value is not None}

    def knows(self, names: Iterable[str]) -> bool:
        """Whether these metrics were computed for the run; metrics not computed from runs are ignored."""
        return {split_class(name)[0] for name in names} & set(_computed()) <= self.metrics.keys()

    def result(self, task: Task) -> Result:
        """The record as a result, without flows."""
        gaps = None if isinstance(self.gaps, UnsetType) else Gaps(tuple(_pairs(self.gaps)))
        summary = structs.replace(self.summary, task=task.key)
        return Result(task.case, task.label, summary, rows=(), gaps=gaps, metrics=self.measured)


def _pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(numbers[::2], numbers[1::2], strict=True)


def record_of(task: Task, result: Result) -> Record:
    """The record of a task's result.

    Raises:
        ValueError: the task did not run in virtual time, so it has no trace hash to compare with other runs.
    """
    specs, files = specs_of(task.experiment), files_of(task.experiment)
    gaps = result.gaps
    return Record(
        run=run_id(specs, files),
        specs=specs,
        files=files,
        ran=(code_of(task.experiment),),
        summary=structs.replace(result.summary, task=UNSET),
        metrics=dict.fromkeys(_computed()) | measure(result),
        gaps=UNSET if gaps is None else tuple(number for pair in gaps.bins for number in pair),
    )


def _computed() -> list[str]:
    """The names of the metrics that are computed from runs, without a class of flows in the name."""
    return [name for name, entry in metrics().items() if entry.compute is not None]


def without_seed(specs: Mapping[str, Any]) -> bytes:
    """The specs without the seed, as JSON; equal for runs that differ only in their seeds."""
    return msgspec.json.encode({key: value for key, value in specs.items() if key != "seed"}, order="sorted")


def differences(old: Record, new: Record) -> list[str]:
    """The names of metrics and summary keys whose values in `old` differ or are missing in `new`.

    Both records have the same specs. Metrics are added and removed over time, so a metric that was computed
    for only one of the two records is ignored.
    """
    names = ["trace"] if old.summary.trace_sha256 != new.summary.trace_sha256 else []
    names += _unlike("", _compared(old), _compared(new))
    known = {name: value for name, value in old.measured.items() if split_class(name)[0] in new.metrics}
    return names + _unlike("metrics.", known, new.measured)


def _compared(record: Record) -> dict[str, Any]:
    summary: dict[str, Any] = msgspec.to_builtins(record.summary)
    return {key: value for key, value in summary.items() if key not in {*_NOT_COMPARED, "trace_sha256"}}


def _unlike(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys of `old` whose values differ or are missing in `new`, each with `prefix` before it."""
    keys = []
    for key, value in old.items():
        other = new.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            keys += _unlike(f"{prefix}{key}.", value, other)
        elif value != other:
            keys.append(prefix + key)
    return keys


def joined(old: Record | None, new: Record) -> Record:
    """The stored record of a run after it was run again.

    Args:
        old: the stored record; None if there is none.
        new: the record of a new run of the same specs, with a single code hash.
    """
    if old is None:
        return new
    if not differences(old, new):
        return structs.replace(new, ran=_shortened((*old.ran, *new.ran)), differs=old.differs)
    return structs.replace(new, differs=_shortened((*old.differs, *old.ran), but=new.code))


def _shortened(codes: tuple[str, ...], but: str = "") -> tuple[str, ...]:
    """The code hashes without duplicates and without `but`: the first and the latest, at most MOST_CODES."""
    codes = tuple(code for code in dict.fromkeys(codes) if code != but)
    return codes if len(codes) <= MOST_CODES else (codes[0], *codes[1 - MOST_CODES :])
