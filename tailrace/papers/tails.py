# SPDX-License-Identifier: Apache-2.0
"""The percentile that replaces a 99th percentile if all seeds together have too few flows for the latter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import UnsetType

from tailrace.results.metrics import split_class
from tailrace.results.result import Result
from tailrace.results.statistics import TAILS, tail_name, tail_percent

P99 = ("fct_p99", "slowdown_p99", "ood_p99")
"""Metrics that may be replaced by the metric with another percentile in place of `p99` in its name."""


def flows_by_class(runs: Sequence[Sequence[Result]]) -> dict[str, int]:
    """The smallest number of flows in any cell, that is, of a scheme in a case, by class of flows; the empty
    name is for all measured flows.

    Args:
        runs: the results of each cell, one per seed.
    """
    counts: dict[str, list[int]] = {}
    for results in runs:
        if results:
            counts.setdefault("", []).append(sum(result.summary.flows for result in results))
        classes: Counter[str] = Counter()
        for result in results:
            by_class = result.summary.classes
            classes.update(
                {} if isinstance(by_class, UnsetType) else {name: row.flows for name, row in by_class.items()}
            )
        for name, count in classes.items():
            counts.setdefault(name, []).append(count)
    return {name: min(each) for name, each in counts.items()}


def tails(name: str) -> tuple[str, ...]:
    """A metric, and the metrics that may replace it."""
    if split_class(name)[0] not in P99:
        return (name,)
    return tuple(name.replace("p99", tail_name(percent)) for percent in TAILS)


def shown_metric(name: str, flows: Mapping[str, int]) -> str:
    """The metric to show: the named metric or, with few flows in its class, that of another percentile."""
    base, flow_class = split_class(name)
    if base not in P99 or flow_class not in flows:
        return name
    return name.replace("p99", tail_name(tail_percent(flows[flow_class])))
