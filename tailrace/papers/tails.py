# SPDX-License-Identifier: Apache-2.0
"""The tail that replaces a 99th percentile where there are too few flows for one, over all seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import UnsetType

from tailrace.results.metrics import split_class
from tailrace.results.result import Result
from tailrace.results.statistics import TAILS, tail_name, tail_percent

P99 = ("fct_p99", "slowdown_p99", "ood_p99")
"""Metrics that have another in their place, whose name is the same but for `p99`."""


def flows_by_class(runs: Sequence[Sequence[Result]]) -> dict[str, int]:
    """The flows of each class, and by the empty name all that count, of the cell that has the fewest.

    Args:
        runs: of each cell, one a seed.
    """
    counts: dict[str, list[int]] = {}
    for results in runs:
        if results:
            counts.setdefault("", []).append(sum(result.summary.flows for result in results))
        classes: Counter[str] = Counter()
        for result in results:
            by_class = result.summary.classes
            classes.update(
                {} if isinstance(by_class, UnsetType) else {name: of.flows for name, of in by_class.items()}
            )
        for name, count in classes.items():
            counts.setdefault(name, []).append(count)
    return {name: min(each) for name, each in counts.items()}


def tails(name: str) -> tuple[str, ...]:
    """A metric, and those that may replace it."""
    if split_class(name)[0] not in P99:
        return (name,)
    return tuple(name.replace("p99", tail_name(percent)) for percent in TAILS)


def shown_metric(name: str, flows: Mapping[str, int]) -> str:
    """The metric that is shown for one, given the flows of each class: itself, or that of another tail."""
    base, flow_class = split_class(name)
    if base not in P99 or flow_class not in flows:
        return name
    return name.replace("p99", tail_name(tail_percent(flows[flow_class])))
