# SPDX-License-Identifier: Apache-2.0
"""Figures of the network over time: throughput, imbalance of uplinks and queues, from samples of ports; paths
and throughput of followed flows.

A run stores only the spec of its network, from which the network is built again (networks.py). Followed flows
are those given by `tailrace run --follow`. A case is `clean`, or the faults' names; a label is a scheme's
name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.report.figures import plot
from tailrace.report.figures.kind import FOLLOWED, SAMPLES, kind
from tailrace.report.figures.panels import MOST_LINES, Numbered, by_case, over_time, shares
from tailrace.report.figures.plot import Look
from tailrace.report.networks import network
from tailrace.results import sampled
from tailrace.results.estimates import Group, SeedValues, comparison_groups
from tailrace.results.results import Results
from tailrace.spec.units import time_unit
from tailrace.tables.arrow import rows_of
from tailrace.topology import Topology

_KIB = 1 << 10
_GBPS = 1e9

_T = TypeVar("_T")


def _sampled(
    results: Results, values: Callable[[sampled.Series, Topology], _T]
) -> tuple[list[Group], Callable[[Group], list[_T]]]:
    """The groups of runs of which any has values, made from its samples, and the values of a group's runs.
    Runs without samples are left out.
    """
    of_run = {}
    for result in results.results:
        table = result.timelines.queues
        series = None if table is None else sampled.series_of(table)
        if series is not None:
            of_run[id(result)] = values(series, network(result.summary.topology))

    def of_group(group: Group) -> list[_T]:
        return [of_run[id(result)] for result in group.results]

    groups = comparison_groups(result for result in results.results if id(result) in of_run)
    return [group for group in groups if any(of_group(group))], of_group


def _rates(series: sampled.Series, topology: Topology) -> dict[int, float]:
    """The throughput in Gb/s by the end of its interval; empty if nothing was sent to hosts."""
    rates = [rate / _GBPS for rate in sampled.throughput(series, topology)]
    return dict(zip(series.times_ns[1:], rates, strict=True)) if any(rates) else {}


@kind("Throughput: what switches send to hosts", SAMPLES, of_network=True)
def throughput(results: Results, look: Look) -> Figure | None:
    """What switches send to hosts over time: means over the seeds with bands; None if nothing was sent."""
    groups, rates_of = _sampled(results, _rates)
    if not groups:
        return None
    unit_ns, unit = time_unit(
        max(time_ns for group in groups for rates in rates_of(group) for time_ns in rates)
    )

    def draw(axis: Axes, of_case: Numbered, look: Look) -> None:
        drawn = []
        for number, group in of_case:
            by_time = rates_of(group)
            times = sorted(set().union(*by_time))
            # at times at which a run has no samples, nothing is sent
            means = [SeedValues(tuple(rates.get(at, 0.0) for rates in by_time)).estimate() for at in times]
            x, y = [at / unit_ns for at in times], [each.value for each in means]
            plot.band(axis, x, [each.ends for each in means], number)
            axis.plot(x, y, label=group.label, color=plot.colour(number), linestyle=plot.line(number))
            drawn += y
        axis.set_xlabel(f"virtual time ({unit})")
        axis.set_ylabel("throughput (Gb/s)")
        look.scale(axis, "y", drawn)

    return by_case(groups, look, draw)


def _imbalances(series: sampled.Series, topology: Topology) -> list[float]:
    used = sampled.utilisation(series, topology)
    return [value for values in sampled.imbalance(used, topology) for value in values]


@kind("Imbalance of a switch's uplinks in an interval between samples", SAMPLES, of_network=True)
def imbalance(results: Results, look: Look) -> Figure | None:
    """The distribution over switches and intervals of samples; None if it is 0 everywhere."""
    return _distributions(results, look, _imbalances, "imbalance of uplinks, (max - min) / mean")


def _lengths(series: sampled.Series, _topology: Topology) -> list[float]:
    return [length / _KIB for length in sampled.queue_lengths(series)]


@kind("Queues, over all ports that sent, and all samples", SAMPLES, of_network=True)
def queues(results: Results, look: Look) -> Figure | None:
    """The distribution over all ports that sent, and all samples; None if all queues were empty."""
    return _distributions(results, look, _lengths, "queue (KiB)")


def _distributions(
    results: Results, look: Look, values: Callable[[sampled.Series, Topology], Sequence[float]], title: str
) -> Figure | None:
    groups, values_of = _sampled(results, values)
    if not any(any(each) for group in groups for each in values_of(group)):
        return None
    return by_case(
        groups, look, lambda axis, of_case, look: shares(axis, of_case, values_of, (title, "share"), look)
    )


@kind("The longest queues", SAMPLES, of_one_run=True)
def longest_queues(results: Results, look: Look) -> Figure | None:
    """The longest queues over time; None without samples, or if all queues were empty."""
    lines: dict[tuple[str, int, str], list[tuple[int, float]]] = defaultdict(list)
    columns = ("switch", "port", "peer", "time_ns", "queue_bytes")
    for switch, port, peer, time_ns, size in rows_of(results.results[0].timelines.queues, columns):
        lines[switch, port, peer].append((time_ns, size / _KIB))
    longest = {key: max(size for _, size in points) for key, points in lines.items()}
    if not any(longest.values()):
        return None
    keys = sorted(lines, key=lambda key: (-longest[key], key))[:MOST_LINES]
    shown = [(f"{switch} → {peer}", sorted(lines[switch, port, peer])) for switch, port, peer in keys]
    return over_time(shown, "queue (KiB)", look, columns=4, linestyle="-", linewidth=1.2)


@kind("Paths of followed flows", FOLLOWED, of_one_run=True)
def paths(results: Results, look: Look) -> Figure | None:
    """When the packets of followed flows passed which switches; None if no flow was followed."""
    by_flow: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for flow, *point in rows_of(results.results[0].timelines.paths, ("flow", "time_ns", "switch")):
        by_flow[flow].append((point[0], point[1]))
    if not by_flow:
        return None
    unit_ns, unit = time_unit(max(time_ns for points in by_flow.values() for time_ns, _ in points))
    flows = sorted(by_flow)[:MOST_LINES]
    with plot.style():
        figure, axes = plot.panels(len(flows), look, width=7.5, height=2.6, columns=1)
        for axis, flow in zip(axes, flows, strict=True):
            times, names = zip(*sorted(by_flow[flow]), strict=True)
            # switches in the order in which the flow's packets first passed them
            switches = list(dict.fromkeys(names))
            x, y = [time_ns / unit_ns for time_ns in times], list(map(switches.index, names))
            axis.plot(x, y, linestyle="none", marker="|", markersize=6, color=plot.colour(0))
            axis.set_yticks(range(len(switches)), switches)
            axis.invert_yaxis()
            axis.set_title(f"flow {flow}: packets at switches")
            axis.set_xlabel(f"virtual time ({unit})")
    return figure


@kind("Throughput of followed flows", FOLLOWED, of_network=True, of_one_run=True)
def flow_throughput(results: Results, look: Look) -> Figure | None:
    """The payload rate of followed flows at their last switch over time; None if no followed flow arrived."""
    (result,) = results.results
    mtu_bytes = result.summary.mtu_bytes
    if isinstance(mtu_bytes, UnsetType):
        return None
    topology = network(result.summary.topology)
    times, rates = sampled.flow_throughput(result.timelines, result.rows, topology, mtu_bytes)
    lines = [
        (f"flow {flow}", list(zip(times[1:], (rate / _GBPS for rate in rates[flow]), strict=True)))
        for flow in sorted(rates)[:MOST_LINES]
    ]
    return over_time(lines, "throughput (Gb/s)", look) if any(map(any, rates.values())) else None
