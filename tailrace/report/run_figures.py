# SPDX-License-Identifier: Apache-2.0
"""Figures of a report about runs: completion times, slowdown by size, order, queues and paths over time.

A case is `clean`, or the faults' names; a label is a scheme's name. Followed flows are those given by
`tailrace run --follow`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailrace.report.figures import plot
from tailrace.report.figures.figure import bars, completion, distribution
from tailrace.results.estimates import Group, comparison_groups
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


def completion_figure(results: Sequence[Result]) -> Figure:
    """The share of flows that had finished after a time: a panel per case, a line per scheme."""
    cases, labels = _cases_and_labels(results)
    groups = comparison_groups(results)
    with plot.style():
        figure, axes = plot.panels(len(cases))
        for axis, case in zip(axes, cases, strict=True):
            completion(axis, case, [group for group in groups if group.case == case], labels)
        plot.legend(figure, *axes)
    return figure


def slowdown_figure(results: Sequence[Result]) -> Figure:
    """Mean and p99 slowdown by flow size; if all flows have the same size, the distribution of slowdowns.

    If a size has few flows, p95 or the maximum is shown in place of p99.
    """
    cases, labels = _cases_and_labels(results)
    edges = _edges(sorted({row.bytes for result in results for row in measured_rows(result.rows)}))
    percent = tail_percent(_fewest_flows(results, edges))
    with plot.style():
        figure, axes = plot.panels(len(cases))
        for axis, case in zip(axes, cases, strict=True):
            for group in comparison_groups(result for result in results if result.case == case):
                number = labels.index(group.label)
                if len(edges) > 1:
                    _by_size(axis, group, edges, number, percent)
                else:
                    rows = _flows(group)
                    factors = [row.slowdown for row in rows if row.slowdown is not None]
                    if factors:
                        distribution(axis, factors, len(rows), number, label=group.label, linewidth=1.6)
            axis.set_title(case)
            if len(edges) > 1:
                plot.logarithmic(axis, "x", lambda size: format_bytes(round(size)), base=2)
                axis.set_xlabel(f"flow size up to; solid: mean, dotted: {tail_name(percent)}")
                axis.set_ylabel("slowdown (×)")
            else:
                axis.set_xlabel("slowdown (×)")
                axis.set_ylabel("share of flows")
                axis.set_ylim(0, 1.02)
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


def _by_size(axis: Axes, group: Group, edges: Sequence[int], number: int, percent: int) -> None:
    points = []
    finished = [row for row in _flows(group) if row.slowdown is not None]
    below = 0
    for edge in edges:
        factors = [row.slowdown or 0.0 for row in finished if below < row.bytes <= edge]
        if factors:
            points.append((edge, mean(factors), percentile(factors, percent)))
        below = edge
    sizes, means, tails = [list(column) for column in zip(*points, strict=True)] or ([], [], [])
    axis.plot(sizes, means, color=plot.colour(number), marker="o", markersize=3, label=group.label)
    axis.plot(sizes, tails, color=plot.colour(number), marker="^", markersize=3, linestyle=":")


def order_figure(results: Sequence[Result]) -> Figure | None:
    """Share of packets that arrived out of order: a group of bars per case; None if it was not measured."""
    cases, labels = _cases_and_labels(results)
    with plot.style():
        figure, (axis,) = plot.panels(1, width=min(9.0, max(4.2, 0.5 * len(cases) * len(labels))))
        bars(axis, "out_of_order_share", comparison_groups(results), cases, labels, highest=1.0)
        if not axis.patches:
            return None
        plot.legend(figure, axis)
    return figure


def queue_figure(result: Result) -> Figure | None:
    """The longest queues over time; None without samples."""
    table = result.timelines.queues
    if table is None or not table.num_rows:
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
        figure, (axis,) = plot.panels(1, width=7.5)
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
        axis.set_ylim(bottom=0)
        plot.legend(figure, axis, columns=4)
    return figure


def path_figure(result: Result) -> Figure | None:
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
        figure, axes = plot.panels(len(flows), width=7.5, height=2.6, columns=1)
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
