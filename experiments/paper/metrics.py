# SPDX-License-Identifier: Apache-2.0
"""What papers plot, computed from the rows and the summary of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.metrics import mean, percentile
from experiments.result import Result
from experiments.rows import FlowRow
from spec import SpecError


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its title, the unit in which it is shown (units.py), and how it is computed from a run.

    `compute` gives None where the run has no such value, and is None itself for what no run measures.
    """

    title: str
    unit: str
    compute: Callable[[Result], float | None] | None = None


def _times(rows: Sequence[FlowRow]) -> list[int]:
    return [row.fct_ns for row in rows if row.fct_ns is not None]


def _percentile(percent: int) -> Callable[[Result], float | None]:
    def compute(result: Result) -> float | None:
        # a percentile of the flows that finished would flatter a run in which some did not
        return float(percentile(_times(result.rows), percent)) if result.complete else None

    return compute


def _mean_fct(result: Result) -> float | None:
    return mean(_times(result.rows)) if result.complete else None


def _runtime(result: Result) -> float | None:
    """From the first start to the last end."""
    ends = [row.end_ns for row in result.rows if row.end_ns is not None]
    if len(ends) < len(result.rows):
        return None
    return float(max(ends) - min(row.start_ns for row in result.rows))


def _slowdown(result: Result) -> float | None:
    factors = [row.slowdown for row in result.rows if row.slowdown is not None]
    return mean(factors) if result.complete else None


def _slowdown_p99(result: Result) -> float | None:
    factors = [row.slowdown for row in result.rows if row.slowdown is not None]
    return percentile(factors, 99) if result.complete else None


def _out_of_order(result: Result) -> float | None:
    """Data packets that arrived when another PSN was expected, over all that arrived (Flowcut §III-C2)."""
    share = result.summary.packets.out_of_order_fraction
    return share if isinstance(share, float) else None


def _draining(result: Result) -> float | None:
    """Mean over the flows of the share of their run time for which they were stopped (Flowcut Table IV)."""
    shares = [row.drained_ns / row.fct_ns for row in result.rows if row.fct_ns]
    return mean(shares) if result.complete else None


def _whole(name: str) -> Callable[[Result], float | None]:
    """The sum of a column of the rows."""
    return lambda result: float(sum(getattr(row, name) for row in result.rows))


METRICS: Mapping[str, Metric] = {
    "fct_mean": Metric("mean FCT", "us", _mean_fct),
    "fct_p50": Metric("median FCT", "us", _percentile(50)),
    "fct_p99": Metric("p99 FCT", "us", _percentile(99)),
    "fct_max": Metric("largest FCT", "us", _percentile(100)),
    "runtime": Metric("runtime", "us", _runtime),
    "slowdown_mean": Metric("mean slowdown", "times", _slowdown),
    "slowdown_p99": Metric("p99 slowdown", "times", _slowdown_p99),
    "out_of_order": Metric("packets out of order", "%", _out_of_order),
    "ood_max": Metric(
        "out-of-order degree", "", lambda result: float(max(row.ood_max for row in result.rows))
    ),
    "overtaken": Metric("packets overtaken", "", _whole("overtaken")),
    "draining": Metric("time spent draining", "%", _draining),
    "drains": Metric("drains", "", _whole("drains")),
    "path_changes": Metric("path changes", "", _whole("path_changes")),
    "retransmitted": Metric("retransmitted packets", "", _whole("retransmitted")),
    "completed": Metric("flows completed", "%", lambda result: result.summary.completed / len(result.rows)),
    "gap": Metric("flowlet gap", "us"),
    "memory": Metric("memory", "KiB"),
    "packet_bytes": Metric("extra bytes a packet", "B"),
    "flow_bytes": Metric("extra bytes a flow", "B"),
    "overhead": Metric("overhead at 1 KiB", "%"),
}
"""All metrics by the names that files and claims use. `gap` is what a search has chosen (tune.py); the last
ones come from the memory model."""


def metric(name: str) -> Metric:
    """The metric with a name.

    Raises:
        SpecError: there is none.
    """
    found = METRICS.get(name)
    if found is None:
        raise SpecError(f"metric {name!r} is not known; expected {', '.join(METRICS)}")
    return found


def measure(results: Sequence[Result]) -> dict[str, float]:
    """Every metric of runs that differ in their seeds only: the mean over them; what one lacks is absent."""
    found = {}
    for name, one in METRICS.items():
        if one.compute is None:
            continue
        values = [value for result in results if (value := one.compute(result)) is not None]
        if values and len(values) == len(results):
            found[name] = mean(values)
    return found
