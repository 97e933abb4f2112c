# SPDX-License-Identifier: Apache-2.0
"""Figures of the network over time, from samples of ports: throughput, imbalance of uplinks, queue lengths.

A run stores only the spec of its network, from which the network is built again (networks.py). Followed flows
are those given by `tailrace run --follow`. A case is `clean`, or the faults' names; a label is a scheme's
name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.report.figures import plot
from tailrace.report.figures.figure import distributions
from tailrace.report.figures.plot import NATURAL, Look
from tailrace.report.networks import network
from tailrace.results.estimates import Group, SeedValues, comparison_groups
from tailrace.results.result import Result
from tailrace.results.sampled import (
    Series,
    flow_throughput,
    imbalance,
    queue_lengths,
    series_of,
    throughput,
    utilisation,
)
from tailrace.spec.units import time_unit
from tailrace.topology import Topology

_KIB = 1 << 10
_GBPS = 1e9
_MOST_FLOWS = 8


def flow_throughput_figure(result: Result, look: Look = NATURAL) -> Figure | None:
    """The payload rate of followed flows at their last switch over time; None if no followed flow arrived."""
    mtu_bytes = result.summary.mtu_bytes
    if result.timelines.paths is None or isinstance(mtu_bytes, UnsetType):
        return None
    times, rates = flow_throughput(result.timelines, result.rows, network(result.summary.topology), mtu_bytes)
    if not any(map(any, rates.values())):
        return None
    unit_ns, unit = time_unit(times[-1])
    with plot.style():
        figure, (axis,) = plot.panels(1, look, width=7.5)
        for number, flow in enumerate(sorted(rates)[:_MOST_FLOWS]):
            x, y = [time_ns / unit_ns for time_ns in times[1:]], [rate / _GBPS for rate in rates[flow]]
            axis.plot(x, y, color=plot.colour(number), linestyle=plot.line(number), label=f"flow {flow}")
        axis.set_xlabel(f"virtual time ({unit})")
        axis.set_ylabel("throughput (Gb/s)")
        look.scale(axis, "y", [rate / _GBPS for flow in sorted(rates)[:_MOST_FLOWS] for rate in rates[flow]])
        plot.legend(figure, axis)
    return figure


_Values = Callable[[Series, Topology], Sequence[float]]


class _Sampled(NamedTuple):
    """Runs that differ in their seeds only: the samples of each run, and values made from them."""

    group: Group
    series: list[Series]
    values: list[Sequence[float]]


_Draw = Callable[[Axes, _Sampled, int], list[float]]
"""Draws the values of a group, given the index of its scheme; returns what is drawn."""


def _rates(series: Series, topology: Topology) -> list[float]:
    return [rate / _GBPS for rate in throughput(series, topology)]


def _imbalance(series: Series, topology: Topology) -> list[float]:
    return [value for values in imbalance(utilisation(series, topology), topology) for value in values]


def _lengths(series: Series, _topology: Topology) -> list[float]:
    return [length / _KIB for length in queue_lengths(series)]


def throughput_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """What switches send to hosts over time: means over the seeds with bands; None if nothing was sent."""
    groups = [each for each in _sampled(results, _rates) if any(map(any, each.values))]
    if not groups:
        return None
    unit_ns, unit = time_unit(max(series.times_ns[-1] for each in groups for series in each.series))

    def draw(axis: Axes, of_group: _Sampled, number: int) -> list[float]:
        by_time = [
            dict(zip(series.times_ns[1:], rates, strict=True))
            for series, rates in zip(of_group.series, of_group.values, strict=True)
        ]
        times = sorted(set().union(*by_time))
        # at times at which a run has no samples, nothing is sent
        means = [SeedValues(tuple(rates.get(at, 0.0) for rates in by_time)).estimate() for at in times]
        x, y = [at / unit_ns for at in times], [each.value for each in means]
        plot.band(axis, x, [each.ends for each in means], number)
        colour, dashes = plot.colour(number), plot.line(number)
        axis.plot(x, y, label=of_group.group.label, color=colour, linestyle=dashes)
        return y

    return _by_case(groups, look, draw, "y", (f"virtual time ({unit})", "throughput (Gb/s)"))


def imbalance_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """The distribution over switches and intervals of samples; None if it is 0 everywhere."""
    return _distributions(results, look, _imbalance, "imbalance of uplinks, (max - min) / mean")


def lengths_figure(results: Sequence[Result], look: Look = NATURAL) -> Figure | None:
    """The distribution over all ports that sent, and all samples; None if all queues were empty."""
    return _distributions(results, look, _lengths, "queue (KiB)")


def _distributions(results: Sequence[Result], look: Look, values: _Values, title: str) -> Figure | None:
    groups = [each for each in _sampled(results, values) if any(each.values)]
    if not any(map(any, (values for each in groups for values in each.values))):
        return None

    def draw(axis: Axes, of_group: _Sampled, number: int) -> list[float]:
        return distributions(axis, of_group.values, number, label=of_group.group.label)

    return _by_case(groups, look, draw, "x", (title, "share"))


def _by_case(
    groups: Sequence[_Sampled], look: Look, draw: _Draw, which: str, titles: tuple[str, str]
) -> Figure:
    """A panel per case, a line per scheme; the axis `which` has the values, and may be logarithmic."""
    cases = list(dict.fromkeys(each.group.case for each in groups))
    labels = list(dict.fromkeys(each.group.label for each in groups))
    with plot.style():
        figure, axes = plot.panels(len(cases), look)
        for axis, case in zip(axes, cases, strict=True):
            of_case = [each for each in groups if each.group.case == case]
            drawn = [value for each in of_case for value in draw(axis, each, labels.index(each.group.label))]
            axis.set_title(case)
            axis.set_xlabel(titles[0])
            axis.set_ylabel(titles[1])
            if which == "x":
                axis.set_ylim(0, 1.02)
            look.scale(axis, which, drawn)
        plot.legend(figure, *axes)
    return figure


def _sampled(results: Sequence[Result], values: _Values) -> list[_Sampled]:
    """The samples of each group, without runs that have none."""
    tables = [result.timelines.queues for result in results]
    series = [None if table is None else series_of(table) for table in tables]
    runs = [(result, each) for result, each in zip(results, series, strict=True) if each is not None]
    of_run = {id(result): each for result, each in runs}
    return [
        _Sampled(
            group,
            [of_run[id(result)] for result in group.results],
            [values(of_run[id(result)], network(result.summary.topology)) for result in group.results],
        )
        for group in comparison_groups(result for result, _ in runs)
    ]
