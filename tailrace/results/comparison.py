# SPDX-License-Identifier: Apache-2.0
"""comparison.json: the runs, and over several seeds their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from arro3.core import Table
from msgspec import UNSET, UnsetType

from tailrace.results.estimates import Estimate, SummaryRow
from tailrace.results.rows import SCHEMA, measured_rows
from tailrace.results.summary import Summary
from tailrace.spec.errors import FileError
from tailrace.tables.arrow import TEXT, make_table, values_of

if TYPE_CHECKING:
    from tailrace.results.result import Result

COMPARISON = "comparison.json"


class Entry(msgspec.Struct, frozen=True):
    """One run within comparison.json. `p99_ratio` is its FCT p99 over that of the case's first scheme with
    the same seed.
    """

    case: str
    label: str
    summary: Summary
    p99_ratio: float | UnsetType = UNSET


class Failure(msgspec.Struct, frozen=True):
    """A run that did not come to its end, and why."""

    case: str
    label: str
    reason: str

    def __str__(self) -> str:
        return f"{self.case}, {self.label}: {self.reason}"


class LeftOut(msgspec.Struct, frozen=True):
    """A scheme that cannot run on the network, and why."""

    label: str
    reason: str

    def __str__(self) -> str:
        return f"{self.label} is left out: {self.reason}"


class Mean(msgspec.Struct, frozen=True):
    """A value over seeds, and its interval, where there is one."""

    value: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET


class OverSeeds(msgspec.Struct, frozen=True):
    """The runs of a scheme in a case, one a seed.

    flows: that finished and count, over all seeds
    measured: means over the seeds, by the names of metrics
    ratios: over the case's first scheme, seed by seed, of metrics
    best: what is not worse than the best of the case
    """

    case: str
    label: str
    seeds: tuple[int, ...]
    flows: int
    measured: dict[str, Mean]
    ratios: dict[str, Mean]
    best: tuple[str, ...]


class ComparisonDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """comparison.json: runs in the order of cases, schemes and seeds, the runs that failed, and the schemes
    that cannot run on the network.

    `seeds` are those asked for, and `over_seeds` is there where they are several. `command` runs it again.
    """

    runs: tuple[Entry, ...]
    seeds: tuple[int, ...] = ()
    over_seeds: tuple[OverSeeds, ...] = ()
    failed: tuple[Failure, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    command: str = ""


def p99_ratio(result: Result, results: Sequence[Result], first: str) -> float | None:
    """The run's p99 over that of scheme `first` in the same case with the same seed; None where either has
    unfinished flows.

    The slowest flows are those that did not finish, so a percentile of the others would flatter the run.
    """
    wanted = (result.case, first, result.summary.seed)
    base = next((other for other in results if (other.case, other.label, other.summary.seed) == wanted), None)
    if base is None or not (base.complete and result.complete):
        return None
    if base.p99_ns is None or result.p99_ns is None:
        return None
    return result.p99_ns / base.p99_ns


def comparison(
    results: Sequence[Result],
    first: str,
    failed: Sequence[Failure],
    seeds: Sequence[int] = (),
    rows: Sequence[SummaryRow] = (),
) -> ComparisonDocument:
    """The document of a comparison over some seeds, with ratios against the scheme labelled `first`.

    Of several seeds `rows` summarise the runs of each scheme and case.
    """
    entries = []
    for result in results:
        ratio = p99_ratio(result, results, first)
        entries.append(Entry(result.case, result.label, result.summary, UNSET if ratio is None else ratio))
    over = tuple(map(_over_seeds, rows)) if len(seeds) > 1 else ()
    return ComparisonDocument(tuple(entries), tuple(seeds), over, tuple(failed))


def _over_seeds(row: SummaryRow) -> OverSeeds:
    return OverSeeds(
        case=row.group.case,
        label=row.group.label,
        seeds=row.group.seeds,
        flows=row.flows,
        measured={name: _mean(one) for name, one in row.values.items()},
        ratios={name: _mean(one) for name, one in row.ratios.items()},
        best=row.best,
    )


def _mean(one: Estimate) -> Mean:
    return Mean(one.value) if one.ends is None else Mean(one.value, *one.ends)


def all_flows(runs: Sequence[tuple[Mapping[str, str], Result]]) -> Table:
    """The flows of several runs in one table; what tells the runs apart stands in columns before theirs."""
    found = [(told, len(result.rows), values_of(result.flows)) for told, result in runs]
    columns = dict.fromkeys((name for told, _, _ in found for name in told), TEXT) | SCHEMA
    seen = {name for told, _, values in found for name in (*told, *values)}
    joined = {
        name: [
            value
            for told, count, values in found
            for value in ([told[name]] * count if name in told else values.get(name, [None] * count))
        ]
        for name in columns
        if name in seen
    }
    return make_table(joined, columns)


def within(path: Path, key: str, name: str) -> Path:
    """The folder that a file names, below the one in which the file is.

    Raises:
        FileError: it is elsewhere.
    """
    place = Path(name)
    if place.is_absolute() or ".." in place.parts:
        raise FileError(path, key, f"expected the name of a folder within this one, found {name!r}")
    return path.parent / place


def max_fct_ns(results: Sequence[Result]) -> int:
    """The longest completion time of all measured flows that finished; 0 where none did."""
    return max((row.fct_ns or 0 for result in results for row in measured_rows(result.rows)), default=0)
