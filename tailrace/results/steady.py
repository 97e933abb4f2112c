# SPDX-License-Identifier: Apache-2.0
"""Whether a run with a measuring interval (workloads/interval.py) reached a steady state.

The network is empty at first, so early flows are faster than later ones: the mean slowdown by start time
shows how long the warm-up takes. Above the load that a scheme can carry there is no steady state: flows
accumulate as long as others start, and every mean depends on the length of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from tailrace.results.rows import FlowRow, measured_rows
from tailrace.results.statistics import mean
from tailrace.spec.units import format_time

if TYPE_CHECKING:
    from tailrace.experiments.workloads.interval import Interval
    from tailrace.results.result import Result

PARTS = 20
"""Parts of equal length of the time from 0 to the end of the measuring interval."""

SETTLED_RATIO = 1.5
"""Flows accumulate if there are more active flows in the last third of the interval than this multiple of
those in the first third (assumption: by chance the numbers of a steady run differ by less).
"""


GROWN_RATIO = 1.3
"""Slowdowns still grow if their mean over the last quarter of the time until the interval's end exceeds this
multiple of that over the second quarter (assumption: at a load of 0.5 on 16 hosts it does in few runs).
"""


class Steady(Struct, frozen=True, kw_only=True):
    """The warm-up and the load of a run. Times are in ns.

    from_ns, until_ns: the measuring interval
    slowdown: the mean slowdown of the flows that start in each of PARTS parts of the time until `until_ns`;
        None if none of them is complete
    active_first, active_last: mean numbers of active flows in the first and the last third of the interval
    settled: whether flows do not accumulate, by SETTLED_RATIO
    loaded_ns: when the last flow starts
    ended_ns: when the last measured flow ends; later than `loaded_ns`: it had less load beside it
    """

    from_ns: int
    until_ns: int
    slowdown: tuple[float | None, ...]
    active_first: float
    active_last: float
    settled: bool
    loaded_ns: int
    ended_ns: int | UnsetType = UNSET

    @property
    def is_steady(self) -> bool:
        """Whether neither flows accumulate nor slowdowns grow."""
        quarter = len(self.slowdown) // 4
        early, late = (
            [slowdown for slowdown in part if slowdown is not None]
            for part in (self.slowdown[quarter : 2 * quarter], self.slowdown[3 * quarter :])
        )
        grows = bool(early) and bool(late) and mean(late) > GROWN_RATIO * mean(early)
        return self.settled and not grows


def steady_of(rows: Sequence[FlowRow], interval: Interval) -> Steady:
    """The steady state of a run with these flows, background flows included."""
    third_ns = (interval.until_ns - interval.from_ns) / 3
    first = _mean_active(rows, interval.from_ns, interval.from_ns + third_ns)
    last = _mean_active(rows, interval.until_ns - third_ns, interval.until_ns)
    ends = [row.end_ns for row in measured_rows(rows)]
    return Steady(
        from_ns=interval.from_ns,
        until_ns=interval.until_ns,
        slowdown=tuple(_slowdown(rows, part, interval.until_ns) for part in range(PARTS)),
        active_first=first,
        active_last=last,
        settled=last <= SETTLED_RATIO * first,
        loaded_ns=max((row.start_ns for row in rows), default=0),
        ended_ns=UNSET if None in ends or not ends else max(end for end in ends if end is not None),
    )


def _slowdown(rows: Sequence[FlowRow], part: int, until_ns: int) -> float | None:
    factors = [
        row.slowdown
        for row in rows
        if row.slowdown is not None and part * until_ns <= row.start_ns * PARTS < (part + 1) * until_ns
    ]
    return mean(factors) if factors else None


def _mean_active(rows: Sequence[FlowRow], from_ns: float, until_ns: float) -> float:
    """The mean number of flows that have started and are not complete, over a time."""
    total_ns = 0.0
    for row in rows:
        end_ns = until_ns if row.end_ns is None else min(row.end_ns, until_ns)
        total_ns += max(0.0, end_ns - max(row.start_ns, from_ns))
    return total_ns / (until_ns - from_ns)


def steady_lines(results: Sequence[Result]) -> list[str]:
    """What a reader must know of the measuring intervals of some runs; empty without intervals."""
    measured = [(result, result.summary.steady) for result in results]
    known = [(result, steady) for result, steady in measured if not isinstance(steady, UnsetType)]
    if not known:
        return []
    intervals = dict.fromkeys((steady.from_ns, steady.until_ns) for _, steady in known)
    texts = (f"{format_time(first)} to {format_time(last)}" for first, last in intervals)
    lines = [f"measured: flows that start from {', or from '.join(texts)}; the others load the network"]
    growing = dict.fromkeys(result.label for result, steady in known if not steady.is_steady)
    if growing:
        lines.append(f"no steady state, as flows accumulate or slowdowns grow: {', '.join(growing)}")
    alone = dict.fromkeys(
        result.label
        for result, steady in known
        if isinstance(steady.ended_ns, UnsetType) or steady.ended_ns > steady.loaded_ns
    )
    if alone:
        lines.append(
            f"measured flows ended after the last flow had started: {', '.join(alone)}; use duration="
        )
    return lines
