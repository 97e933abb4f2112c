# SPDX-License-Identifier: Apache-2.0
"""Figures of the network over time, from samples of ports: throughput, imbalance of uplinks, queue lengths.

A run stores only the spec of its network, from which the network is built again (networks.py). Followed flows
are those given by `tailrace run --follow`. A case is `clean`, or the faults' names; a label is a scheme's
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.report.figures import plot
from tailrace.report.networks import network
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
from tailrace.results.statistics import cumulative
from tailrace.spec.units import time_unit
from tailrace.topology import Topology

_KIB = 1 << 10
_GBPS = 1e9
_MOST_FLOWS = 8
_MOST_POINTS = 2000
"""Maximum number of points of a distribution; more points would overlap."""


def flow_throughput_figure(result: Result) -> Figure | None:
    """The payload rate of followed flows at their last switch over time; None if no flow was followed."""
    mtu_bytes = result.summary.mtu_bytes
    if result.timelines.paths is None or isinstance(mtu_bytes, UnsetType):
        return None
    times, rates = flow_throughput(result.timelines, result.rows, network(result.summary.topology), mtu_bytes)
    if not rates:
        return None
    unit_ns, unit = time_unit(times[-1])
    with plot.style():
        figure, (axis,) = plot.panels(1, width=7.5)
        for number, flow in enumerate(sorted(rates)[:_MOST_FLOWS]):
            x, y = [time_ns / unit_ns for time_ns in times[1:]], [rate / _GBPS for rate in rates[flow]]
            axis.plot(x, y, color=plot.colour(number), linestyle=plot.line(number), label=f"flow {flow}")
        axis.set_xlabel(f"virtual time ({unit})")
        axis.set_ylabel("throughput (Gb/s)")
        axis.set_ylim(bottom=0)
        plot.legend(figure, axis)
    return figure


_Values = Callable[[Series, Topology], Sequence[float]]


def _rates(series: Series, topology: Topology) -> list[float]:
    return [rate / _GBPS for rate in throughput(series, topology)]


def _imbalance(series: Series, topology: Topology) -> list[float]:
    return [value for values in imbalance(utilisation(series, topology), topology) for value in values]


def _lengths(series: Series, _topology: Topology) -> list[float]:
    return [length / _KIB for length in queue_lengths(series)]


_SAMPLED: tuple[tuple[str, str, _Values, bool], ...] = (
    ("Throughput: what switches send to hosts", "throughput (Gb/s)", _rates, True),
    (
        "Imbalance of a switch's uplinks in an interval between samples",
        "imbalance of uplinks, (max - min) / mean",
        _imbalance,
        False,
    ),
    ("Queues, over all ports that sent, and all samples", "queue (KiB)", _lengths, False),
)
"""Figures of samples: caption, title of the axis, values, and whether these are shown over time."""


def sampled_figures(results: Sequence[Result]) -> Iterator[tuple[Figure | None, str]]:
    """The figures of all runs over time, and of distributions, with their captions; None without samples."""
    for caption, title, values, over_time in _SAMPLED:
        yield _by_case(results, title, values, over_time=over_time), caption


def _by_case(results: Sequence[Result], title: str, values: _Values, *, over_time: bool) -> Figure | None:
    """A panel per case, a line per scheme: values over time if `over_time`, else their distribution."""
    cases = list(dict.fromkeys(result.case for result in results))
    labels = list(dict.fromkeys(result.label for result in results))
    runs = [
        (result, series, network(result.summary.topology))
        for result in results
        if (series := _series(result)) is not None
    ]
    if not runs:
        return None
    unit_ns, unit = time_unit(max(series.times_ns[-1] for _, series, _ in runs))
    with plot.style():
        figure, axes = plot.panels(len(cases))
        for result, series, topology in runs:
            sampled = values(series, topology)
            if over_time:
                x, y = [time_ns / unit_ns for time_ns in series.times_ns[1:]], list(sampled)
            else:
                x, y = cumulative(list(sampled), len(sampled))
                step = len(x) // _MOST_POINTS + 1
                x, y = [*x[::step], *x[-1:]], [*y[::step], *y[-1:]]
            number = labels.index(result.label)
            colour, dashes = plot.colour(number), plot.line(number)
            axes[cases.index(result.case)].plot(x, y, label=result.label, color=colour, linestyle=dashes)
        for axis, case in zip(axes, cases, strict=True):
            axis.set_title(case)
            axis.set_xlabel(f"virtual time ({unit})" if over_time else title)
            axis.set_ylabel(title if over_time else "share")
            axis.set_ylim(0, None if over_time else 1.02)
        plot.legend(figure, *axes)
    return figure


def _series(result: Result) -> Series | None:
    return None if result.timelines.queues is None else series_of(result.timelines.queues)
