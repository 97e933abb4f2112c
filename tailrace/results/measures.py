# SPDX-License-Identifier: Apache-2.0
"""How the metrics of metrics.py are computed from the rows and the summary of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from tailrace.results.rows import FlowRow, measured_rows
from tailrace.results.statistics import mean, percentile

if TYPE_CHECKING:
    from tailrace.results.result import Result

Compute = Callable[["Result"], "float | None"]
"""Computes a metric of a run; None if the run has no such value."""


def counted_rows(result: Result) -> tuple[FlowRow, ...]:
    """The rows of all flows except background flows, which only load the network."""
    return measured_rows(result.rows)


def mean_of(column: str) -> Compute:
    """The mean of a column over the flows; None if a flow did not finish."""
    return lambda result: mean(values) if (values := _finished(result, column)) else None


def percentile_of(column: str, percent: int) -> Compute:
    """A percentile of a column over the flows; None if a flow did not finish: slow flows would be missing."""
    return lambda result: (
        float(percentile(values, percent)) if (values := _finished(result, column)) else None
    )


def _finished(result: Result, column: str) -> Sequence[float]:
    rows = counted_rows(result) if result.complete else ()
    return [value for row in rows if (value := getattr(row, column)) is not None]


def sum_of(column: str) -> Compute:
    """The sum of a column over the flows."""
    return lambda result: float(sum(getattr(row, column) for row in counted_rows(result)))


def runtime(result: Result) -> float | None:
    """The time from the first start to the last end of a flow; None if a flow did not finish."""
    rows = counted_rows(result)
    ends = [row.end_ns for row in rows if row.end_ns is not None]
    return float(max(ends) - min(row.start_ns for row in rows)) if ends and len(ends) == len(rows) else None


def marked_share(result: Result) -> float | None:
    """The share of arrived data packets that a user's program marked; None with other programs."""
    queues, arrived = result.summary.queues, sum(row.received for row in result.rows)
    if isinstance(queues, UnsetType) or not queues.program_marks or not arrived:
        return None
    return sum(row.ce_marked for row in result.rows) / arrived


def pings_lost_share(result: Result) -> float | None:
    """The share of echo requests without a reply; None without requests."""
    pings = result.summary.pings
    return None if isinstance(pings, UnsetType) else 1 - pings.received / pings.sent


def ports_paused(result: Result) -> float | None:
    """The mean number of ports of switches that PFC pauses at a time; None without PFC, or in real time."""
    pfc, span_ns = result.summary.pfc, result.summary.virtual_ns
    if isinstance(pfc, UnsetType) or isinstance(span_ns, UnsetType) or not span_ns:
        return None
    return pfc["paused_ns"] / span_ns


def draining_share(result: Result) -> float | None:
    """The mean, over the flows, of a flow's drained time divided by its completion time."""
    shares = [row.drained_ns / row.fct_ns for row in counted_rows(result) if row.fct_ns]
    return mean(shares) if shares and result.complete else None


def degree(percent: int) -> Compute:
    """A percentile over the flows of each flow's largest out-of-order degree, the distance in packets between
    an arriving PSN and the expected one.
    """

    def compute(result: Result) -> float | None:
        degrees = [row.ood_max for row in counted_rows(result)]
        return float(percentile(degrees, percent)) if degrees else None

    return compute


def largest_degree(result: Result) -> float | None:
    """The largest out-of-order degree of all flows, including background flows."""
    return float(max(row.ood_max for row in result.rows)) if result.rows else None


def completed_share(result: Result) -> float | None:
    """The share of flows that finished."""
    return result.summary.completed / result.summary.flows if result.summary.flows else None


def summary(path: str, over: str = "") -> Compute:
    """The value of the summary at `path`, or with `over` its ratio to the value at `over`.

    Paths are attributes and keys with dots between them. None if a value is absent, or the divisor is 0.
    """

    def compute(result: Result) -> float | None:
        value = _value(result.summary, path)
        if not over or value is None:
            return value
        divisor = _value(result.summary, over)
        return value / divisor if divisor else None

    return compute


def _value(item: Any, path: str) -> float | None:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, dict) else getattr(item, name)
        if item is None or isinstance(item, UnsetType):
            return None
    return float(item)


def lost(result: Result) -> float | None:
    """The number of data packets whose payload did not reach the receiver: dropped or trimmed."""
    dropped, trimmed = (_value(result.summary, f"packets.{name}") for name in ("dropped_data", "trimmed"))
    return None if dropped is None else dropped + (trimmed or 0.0)


def pfc(name: str, over: str = "") -> Compute:
    """A value of the summary's `pfc`; None if no packet was delivered."""
    return if_any("packets.delivered", summary(f"pfc.{name}", over))


def gap_quantile(permyriad: int) -> Compute:
    """A quantile, in parts per 10,000, of the gaps between packets of a flow, in ns."""

    def compute(result: Result) -> float | None:
        return None if result.gaps is None or not result.gaps.count else result.gaps.quantile_ns(permyriad)

    return compute


def if_any(path: str, compute: Compute) -> Compute:
    """`compute` if the value at `path` in the summary is present and not 0; else None."""
    return lambda result: compute(result) if _value(result.summary, path) else None


def mean_stretch(result: Result) -> float | None:
    """The mean time in ns by which NICs with HF2T stretched a gap between packets."""
    total, count = _value(result.summary, "hf2t.stretched_ns"), _value(result.summary, "hf2t.stretched")
    return None if total is None else total / max(count or 0.0, 1.0)
