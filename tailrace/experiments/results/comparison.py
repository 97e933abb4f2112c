# SPDX-License-Identifier: Apache-2.0
"""comparison.json, and what runs are told apart by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from arro3.core import Table
from msgspec import UNSET, UnsetType

from tailrace.experiments.results.parquet import TEXT, make_table, values_of
from tailrace.experiments.results.rows import SCHEMA, measured_rows
from tailrace.experiments.results.summary import Summary

if TYPE_CHECKING:
    from tailrace.experiments.results.result import Result

COMPARISON = "comparison.json"


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

    def __str__(self) -> str:
        return f"{self.case}, {self.label}: {self.reason}"


class ComparisonDocument(msgspec.Struct, frozen=True, omit_defaults=True):
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


def comparison(results: Sequence[Result], first: str, failed: Sequence[Failure]) -> ComparisonDocument:
    """The document of a comparison, with ratios against the scheme labelled `first`."""
    entries = []
    for result in results:
        ratio = p99_ratio(result, results, first)
        entries.append(Entry(result.case, result.label, result.summary, UNSET if ratio is None else ratio))
    return ComparisonDocument(tuple(entries), tuple(failed))


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


def max_fct_ns(results: Sequence[Result]) -> int:
    """The longest completion time of all measured flows that finished; 0 where none did."""
    return max((row.fct_ns or 0 for result in results for row in measured_rows(result.rows)), default=0)
