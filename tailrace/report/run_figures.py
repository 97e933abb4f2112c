# SPDX-License-Identifier: Apache-2.0
"""Figures of runs: completion times, slowdown by size, order, queues and paths over time.

A case is `clean`, or the faults' names; a label is a scheme's name. Followed flows are those given by
`tailrace run --follow`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tailrace.report.figures import plot
from tailrace.report.figures.figure import bars, completion, distributions
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.results.estimates import Group, SeedValues, comparison_groups
from tailrace.results.result import Result
from tailrace.results.rows import FlowRow, measured_rows
from tailrace.results.statistics import mean, percentile, tail_name, tail_percent
from tailrace.spec.units import format_bytes, time_unit
from tailrace.tables.arrow import values_of

_KIB = 1 << 10
_BINS = 8
_MOST_LINES = 8
_MOST_SIZES = 6
"""Maximum number of flow sizes that are shown separately; with more sizes, ranges of sizes are shown."""


def completion_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """The share of flows that had finished after a time: a panel per case, a line per scheme."""
    cases, labels = _cases_and_labels(results)
    groups = comparison_groups(results)
    if not any(group.flows for group in groups):
        return None
    with plot.style():
        figure, axes = plot.panels(len(cases), look)
        for axis, case in zip(axes, cases, strict=True):
            completion(axis, case, [group for group in groups if group.case == case], labels, look)
        plot.legend(figure, *axes)
    return figure


def slowdown_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """Mean and p99 slowdown by flow size; if all flows have the same size, the distribution of slowdowns.

    If a size has few flows, p95 or the maximum is shown in place of p99. Means have bands, their intervals
    over the seeds. None if no flow has a slowdown.
    """
    cases, labels = _cases_and_labels(results)
    edges = _edges(sorted({row.bytes for result in results for row in measured_rows(result.rows)}))
    fewest = _fewest_flows(results, edges)
    if not fewest:
        return None
    percent = tail_percent(fewest)
    with plot.style():
        figure, axes = plot.panels(len(cases), look)
        for axis, case in zip(axes, cases, strict=True):
            drawn: list[float] = []
            for group in comparison_groups(result for result in results if result.case == case):
                number = labels.index(group.label)
                if len(edges) > 1:
                    drawn += _by_size(axis, group, edges, number, percent)
                else:
                    drawn += _all_sizes(axis, group, number)
            axis.set_title(case)
            if len(edges) > 1:
                plot.logarithmic(axis, "x", lambda size: format_bytes(round(size)), base=2)
                axis.set_xlabel(f"flow size up to\nsolid: mean, dotted: {tail_name(percent)}")
                axis.set_ylabel("slowdown (×)")
                look.scale(axis, "y", drawn)
            else:
                axis.set_xlabel("slowdown (×)")
                axis.set_ylabel("share of flows")
                axis.set_ylim(0, 1.02)
                look.scale(axis, "x", drawn)
        plot.legend(figure, *axes)
    return figure


def _edges(sizes: Sequence[int]) -> list[int]:
    """Upper ends of the ranges of sizes: all sizes if there are few, else ends with a constant ratio."""
    if len(sizes) <= _MOST_SIZES:
        return list(sizes)
    ratio = (sizes[-1] / sizes[0]) ** (1 / _BINS)
    return [math.ceil(sizes[0] * ratio**number) for number in range(1, _BINS)] + [sizes[-1]]


def _fewest_flows(results: Sequence[Result], edges: Sequence[int]) -> int:
    """The smallest number of finished flows in any range of sizes of any group, empty ranges excluded."""
    counts = [
        sum(row.slowdown is not None and below < row.bytes <= edge for row in _flows(group))
        for group in comparison_groups(results)
        for below, edge in zip((0, *edges), edges, strict=False)
    ]
    return min(filter(None, counts), default=0)


def _flows(group: Group) -> list[FlowRow]:
    """The measured flows of all seeds."""
    return [row for result in group.results for row in measured_rows(result.rows)]


def _all_sizes(axis: Axes, group: Group, number: int) -> list[float]:
    """Draws the distribution of the slowdowns of all flows; returns them."""
    of_seeds = [[row.slowdown for row in measured_rows(result.rows)] for result in group.results]
    return distributions(axis, of_seeds, number, label=group.label, linewidth=1.6)


def _by_size(axis: Axes, group: Group, edges: Sequence[int], number: int, percent: int) -> list[float]:
    """Draws means over the seeds, as in tables, and tails of the flows of all seeds; returns all of them."""
    points, ends = [], []
    for below, edge in zip((0, *edges), edges, strict=False):
        of_seeds = [
            [
                row.slowdown
                for row in measured_rows(result.rows)
                if row.slowdown is not None and below < row.bytes <= edge
            ]
            for result in group.results
        ]
        if any(of_seeds):
            means = SeedValues(tuple(mean(factors) for factors in of_seeds if factors)).estimate()
            pooled = [factor for factors in of_seeds for factor in factors]
            points.append((edge, means.value, percentile(pooled, percent)))
            ends.append(means.ends if all(of_seeds) else None)
    sizes, middles, tails = [list(column) for column in zip(*points, strict=True)] or ([], [], [])
    plot.band(axis, sizes, ends, number)
    axis.plot(sizes, middles, color=plot.colour(number), marker="o", markersize=3, label=group.label)
    axis.plot(sizes, tails, color=plot.colour(number), marker="^", markersize=3, linestyle=":")
    return [*middles, *tails]


def order_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """Share of packets that arrived out of order: a group of bars per case; None if it is 0 everywhere."""
    cases, labels = _cases_and_labels(results)
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=min(9.0, max(4.2, 0.5 * len(cases) * len(labels))))
        bars(axis, "out_of_order_share", comparison_groups(results), cases, labels, highest=1.0)
        if not any(bar.get_height() for bar in axis.patches if isinstance(bar, Rectangle)):
            return None
        plot.legend(figure, axis)
    return figure


def queue_figure(result: Result, look: Look = NATURAL) -> Figure | None:
    """The longest queues over time; None without samples, or if all queues were empty."""
    table = result.timelines.queues
    if table is None or not any(values_of(table)["queue_bytes"]):
        return None
    lines: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
    columns = values_of(table)
    unit_ns, unit = time_unit(max(columns["time_ns"]))
    for *key, time_ns, size in zip(
        *(columns[name] for name in ("switch", "port", "peer", "time_ns", "queue_bytes")), strict=True
    ):
        switch, port, peer = key
        lines.setdefault((switch, port, peer), []).append((time_ns, size))
    longest = sorted(lines, key=lambda key: (-max(size for _, size in lines[key]), key))
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=7.5)
        for number, (switch, port, peer) in enumerate(longest[:_MOST_LINES]):
            points = sorted(lines[switch, port, peer])
            axis.plot(
                [time_ns / unit_ns for time_ns, _ in points],
                [size / _KIB for _, size in points],
                color=plot.colour(number),
                linewidth=1.2,
                label=f"{switch} → {peer}",
            )
        axis.set_xlabel(f"virtual time ({unit})")
        axis.set_ylabel("queue (KiB)")
        look.scale(axis, "y", [size / _KIB for key in longest[:_MOST_LINES] for _, size in lines[key]])
        plot.legend(figure, axis, columns=4)
    return figure


def path_figure(result: Result, look: Look = NATURAL) -> Figure | None:
    """When the packets of followed flows passed which switches; None if no flow was followed."""
    table = result.timelines.paths
    if table is None or not table.num_rows:
        return None
    columns = values_of(table)
    unit_ns, unit = time_unit(max(columns["time_ns"]))
    by_flow: dict[int, list[tuple[int, str]]] = {}
    for flow, time_ns, switch in zip(columns["flow"], columns["time_ns"], columns["switch"], strict=True):
        by_flow.setdefault(flow, []).append((time_ns, switch))
    flows = sorted(by_flow)[:_MOST_LINES]
    with plot.style():
        figure, axes = plot.panels(len(flows), look, width=7.5, height=2.6, columns=1)
        for axis, flow in zip(axes, flows, strict=True):
            points = sorted(by_flow[flow])
            # switches in the order in which the flow's packets first passed them
            switches = list(dict.fromkeys(switch for _, switch in points))
            axis.plot(
                [time_ns / unit_ns for time_ns, _ in points],
                [switches.index(switch) for _, switch in points],
                linestyle="none",
                marker="|",
                markersize=6,
                color=plot.colour(0),
            )
            axis.set_yticks(range(len(switches)), switches)
            axis.invert_yaxis()
            axis.set_title(f"flow {flow}: packets at switches")
            axis.set_xlabel(f"virtual time ({unit})")
    return figure


def _cases_and_labels(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The cases and the labels of the results, in the order of their first appearance."""
    cases = list(dict.fromkeys(result.case for result in results))
    return cases, list(dict.fromkeys(result.label for result in results))
