# SPDX-License-Identifier: Apache-2.0
"""A finished run as one line of JSON: what was run, by which code, and what pages need of what it measured.

What needs every flow is not in it: slowdown by size of flow (chart `sizes`) is made from runs themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from tailrace.hosts.gaps.histogram import MOST_BINS
from tailrace.hosts.measured import Gaps
from tailrace.results.metrics import measure, metrics, split_class
from tailrace.results.result import Result
from tailrace.results.summary import OF_THE_RUN_ITSELF, Summary
from tailrace.study.task import Task, code_of, files_of, run_id, words_of

MOST_CODES = 8
"""That a line remembers."""

_NOT_COMPARED = OF_THE_RUN_ITSELF | {"nics", "version", "p4_sha256", "plugins", "task", "words"}
"""Keys of a summary that say who ran it and how it is run again, and not what came of it."""

_OF_BOTH = ("scheme", "topology", "seed", "target")
"""What the words of a line say, and its summary."""

_SHA256 = re.compile("[0-9a-f]{64}")

Name = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", description="16 hexadecimal digits")]
_Names = Annotated[tuple[Name, ...], Meta(max_length=MOST_CODES)]
_Count = Annotated[int, Meta(ge=0, le=1 << 62)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line.

    run: names the words and what their files hold (task.py)
    words: of the experiment, without what is the default; files: SHA-256 of each that they name
    ran: under which code it was run, each time with this result, the oldest first
    differs: under which code it had another one
    metrics: those of papers, and None for those that the run does not have
    gaps: bins of gaps.parquet by turns, the least gap in ns and how many
    """

    run: Name
    words: dict[str, Any]
    files: dict[str, Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]] = {}
    ran: Annotated[_Names, Meta(min_length=1)]
    differs: _Names = ()
    summary: Summary
    metrics: dict[str, float | None]
    gaps: Annotated[tuple[_Count, ...], Meta(max_length=2 * MOST_BINS)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError where parts contradict each other."""
        if self.run != run_id(self.words, self.files):
            raise ValueError("`run` is not the name of its words: expected a line as it was written")
        for name in _OF_BOTH:
            if self.words.get(name) != getattr(self.summary, name):
                raise ValueError(f"summary.{name} is not that of the words")
        if not _SHA256.fullmatch(self.summary.trace_sha256 or ""):
            raise ValueError("summary.trace_sha256: expected 64 hexadecimal digits, of a run in virtual time")
        if not isinstance(self.gaps, UnsetType) and len(self.gaps) % 2:
            raise ValueError("gaps: expected pairs of numbers")

    @property
    def scheme(self) -> str:
        """The name of its scheme, by which it is told which runs changed."""
        return self.summary.scheme.partition(":")[0]

    @property
    def code(self) -> str:
        """Under which code it was run first."""
        return self.ran[0]

    @property
    def order(self) -> tuple[str, str, str, bytes, int, str]:
        """Sorts runs of similar words beside each other."""
        summary = self.summary
        words = summary.scheme, summary.topology, summary.workload, without_seed(self.words)
        return *words, summary.seed, self.run

    @property
    def measured(self) -> dict[str, float]:
        """The metrics that the run has."""
        return {name: value for name, value in self.metrics.items() if value is not None}

    def knows(self, names: Iterable[str]) -> bool:
        """Whether it was looked for each of these metrics that runs may have."""
        return {split_class(name)[0] for name in names} & set(_computed()) <= self.metrics.keys()

    def result(self, task: Task) -> Result:
        """What is known of the run as a result: without its flows."""
        gaps = None if isinstance(self.gaps, UnsetType) else Gaps(tuple(_pairs(self.gaps)))
        summary = structs.replace(self.summary, task=task.key)
        return Result(task.case, task.label, summary, rows=(), gaps=gaps, metrics=self.measured)


def _pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(numbers[::2], numbers[1::2], strict=True)


def record_of(task: Task, result: Result) -> Record:
    """The line of a task's result.

    Raises:
        ValueError: it was not run in virtual time, so nobody could say whether another run is the same.
    """
    words, files = words_of(task.experiment), files_of(task.experiment)
    gaps = result.gaps
    return Record(
        run=run_id(words, files),
        words=words,
        files=files,
        ran=(code_of(task.experiment),),
        summary=structs.replace(result.summary, task=UNSET),
        metrics=dict.fromkeys(_computed()) | measure(result),
        gaps=UNSET if gaps is None else tuple(number for pair in gaps.bins for number in pair),
    )


def _computed() -> list[str]:
    """The names of the metrics that runs have, without classes."""
    return [name for name, entry in metrics().items() if entry.compute is not None]


def without_seed(words: Mapping[str, Any]) -> bytes:
    """What runs have in common that differ in their seeds only."""
    return msgspec.json.encode({key: value for key, value in words.items() if key != "seed"}, order="sorted")


def differences(old: Record, new: Record) -> list[str]:
    """What the newer of two runs of the same words measured otherwise, or not at all, by name.

    A metric that only one of them was looked for is no difference: metrics come and go.
    """
    found = ["trace"] if old.summary.trace_sha256 != new.summary.trace_sha256 else []
    found += _unlike("", _compared(old), _compared(new))
    known = {name: value for name, value in old.measured.items() if split_class(name)[0] in new.metrics}
    return found + _unlike("metrics.", known, new.measured)


def _compared(record: Record) -> dict[str, Any]:
    summary: dict[str, Any] = msgspec.to_builtins(record.summary)
    return {key: value for key, value in summary.items() if key not in {*_NOT_COMPARED, "trace_sha256"}}


def _unlike(before: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys of the older one whose values are others in the newer one."""
    found = []
    for key, value in old.items():
        other = new.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            found += _unlike(f"{before}{key}.", value, other)
        elif value != other:
            found.append(before + key)
    return found


def joined(old: Record | None, new: Record, *, of_a_sample: bool = False) -> Record:
    """What a store holds of a run after it was run again.

    Args:
        old: what it held until now; None: nothing.
        new: a run of the same words under one code.
        of_a_sample: whether it was run again to see whether others of earlier code may stand.
    """
    (code,) = new.ran
    if old is None:
        return new
    if not differences(old, new):
        if code in old.ran:
            return structs.replace(new, ran=old.ran, differs=old.differs)
        # else it would count with those that stood for it until others of them changed
        return structs.replace(
            new, ran=_least((*old.ran, code)) if of_a_sample else new.ran, differs=old.differs
        )
    others = tuple(each for each in dict.fromkeys((*old.differs, *old.ran)) if each != code)
    return structs.replace(new, differs=_least(others))


def _least(codes: tuple[str, ...]) -> tuple[str, ...]:
    """The first, and the latest."""
    return codes if len(codes) <= MOST_CODES else (codes[0], *codes[1 - MOST_CODES :])
