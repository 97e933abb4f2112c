# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics, which defines names and values for tables, figures, claims and stored runs.

Times are in ns, sizes in bytes, shares from 0 to 1, rates in bit/s; `unit` is the unit in which they are
shown (units.py). Plug-ins register their metrics in the same mapping.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from tailrace.experiments.workloads.classes import CLASSES, NO_CLASS
from tailrace.hosts.measured import RTTS
from tailrace.results.measures import (
    Compute,
    completed_share,
    degree,
    draining_share,
    gap_quantile,
    if_any,
    largest_degree,
    lost,
    marked_share,
    mean_of,
    mean_stretch,
    percentile_of,
    pfc,
    pings_lost_share,
    ports_paused,
    runtime,
    sum_of,
    summary,
)
from tailrace.results.summary import FLOWLETS_AT_LEAVES, packets
from tailrace.results.units import UNITS
from tailrace.spec import SpecError, plugins
from tailrace.spec.registry import check_name
from tailrace.spec.suggest import unknown
from tailrace.spec.text import one_line

if TYPE_CHECKING:
    from tailrace.results.result import Result

CLASS = "_of_"
"""The separator between metric and class of flows in a name such as `fct_p99_of_bystander`."""

MAX_TITLE = 60
"""Maximum number of characters of a title."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    title: the title of the metric's column or axis
    unit: the unit in which the metric is shown, one of units.py
    definition: one sentence that defines the metric
    source: the paper or standard that defines the metric; empty if it is defined here
    better: whether `less` or `more` is better; empty if neither
    by_class: whether the metric is also computed for each class of flows
    compute: computes the metric from a run; None if no run measures it
    """

    name: str
    title: str
    unit: str
    definition: str
    source: str = ""
    better: str = ""
    by_class: bool = False
    compute: Compute | None = None

    @property
    def of_all(self) -> bool:
        """Whether background flows count, too; plug-ins decide that themselves."""
        return self.name in _OF_ALL or not (self.by_class or self.compute is None or self.source == _FAIR)

    @property
    def titled(self) -> str:
        """The title with the unit in brackets, if the unit has a name."""
        unit = UNITS[self.unit].name
        return f"{self.title} ({unit})" if unit else self.title


_FCT, _SLOWDOWN, _DEGREE = "Dukkipati and McKeown 2006", "pFabric", "Flowcut §IV-C"
_PFC, _RLB, _HF2T, _GAPS, _SPRITZ = "IEEE 802.1Qbb", "RLB §III-B", "HF2T §4", "HF2T Table 1", "Spritz §IV"
_CONGA, _FAIR = "CONGA", "Bertsekas and Gallager 1992"
"""Sources of several metrics; Flowcut, RLB, HF2T (host-based flowlet fine-tuning) and Spritz are the papers
that this project implements (docs/learn/glossary.md)."""

_OF_ALL = ("out_of_order_share", "out_of_order_raw_share", "ood_max")
"""The metrics of flows in which background flows count, too."""


def _run(
    name: str, title: str, unit: str, what: str, compute: Compute, source: str = "", better: str = ""
) -> Metric:
    """A metric of a run as a whole."""
    return Metric(name, title, unit, what, source, better, compute=compute)


def _flows(
    name: str, title: str, unit: str, what: str, compute: Compute, source: str = "", better: str = ""
) -> Metric:
    """A metric of flows, which is also computed for each class of flows."""
    return Metric(name, title, unit, what, source, better, by_class=True, compute=compute)


_of_pfc, _of_rlb = (partial(_run, source=source, better="less") for source in (_PFC, _RLB))
_of_gaps, _of_hf2t = (partial(_run, source=source) for source in (_GAPS, _HF2T))


def _distribution(name: str, title: str, unit: str, what: str, column: str, source: str) -> Iterator[Metric]:
    """Mean, median, p95, p99 and maximum of a column over the flows."""
    statistics = (
        ("mean", "mean", "Mean", mean_of(column)),
        ("p50", "median", "Median", percentile_of(column, 50)),
        ("p95", "p95", "95th percentile of the", percentile_of(column, 95)),
        ("p99", "p99", "99th percentile of the", percentile_of(column, 99)),
        ("max", "largest", "Largest", percentile_of(column, 100)),
    )
    for end, kind, begin, compute in statistics:
        yield _flows(f"{name}_{end}", f"{kind} {title}", unit, f"{begin} {what}.", compute, source, "less")


_BUILT_IN: tuple[Metric, ...] = (
    *_distribution(
        "fct", "FCT", "us", "time from a flow's start until all its bytes have arrived", "fct_ns", _FCT
    ),
    _flows(
        "runtime",
        "runtime",
        "us",
        "Time from the start of the first flow to the end of the last.",
        runtime,
        "",
        "less",
    ),
    *_distribution(
        "slowdown",
        "slowdown",
        "times",
        "FCT divided by the FCT of the same flow alone",
        "slowdown",
        _SLOWDOWN,
    ),
    _flows(
        "out_of_order_share",
        "packets out of order",
        "%",
        "First transmissions that arrived before an earlier packet that was not lost, over all that arrived.",
        summary("packets.out_of_order_share"),
        "Flowcut §III-C2, without losses",
        "less",
    ),
    _flows(
        "out_of_order_raw_share",
        "arrivals out of order",
        "%",
        "Data packets with another PSN than the transport expected (also after losses), over all arrived.",
        summary("packets.out_of_order_raw_share"),
        "Flowcut §III-C2, Spritz Fig. 6",
        "less",
    ),
    _flows(
        "ood_max",
        "out-of-order degree",
        "",
        "Largest distance, in packets, between the PSN of a packet out of order and the expected one.",
        largest_degree,
        _DEGREE,
        "less",
    ),
    *(
        _flows(
            f"ood_p{percent}",
            f"p{percent} of the out-of-order degree",
            "",
            f"Each flow's largest out-of-order degree: {percent}th percentile over the flows.",
            degree(percent),
            _DEGREE,
            "less",
        )
        for percent in (95, 99)
    ),
    _of_pfc("pauses", "PFC pauses", "", "PFC frames that pause.", pfc("pauses")),
    _of_pfc(
        "pauses_per_packet",
        "PFC pauses per packet",
        "%",
        "PFC frames that pause, over data packets delivered.",
        pfc("pauses", "packets.delivered"),
    ),
    _of_pfc(
        "pause_share",
        "time paused",
        "%",
        "Mean over the ports of switches of the share of the run for which PFC paused them.",
        pfc("pause_share"),
    ),
    _of_pfc(
        "ports_paused",
        "ports paused at a time",
        "",
        "Mean number of ports of switches that PFC pauses at a time.",
        ports_paused,
    ),
    _of_pfc(
        "pause_mean",
        "mean pause",
        "us",
        "Mean time for which PFC paused a port of a switch.",
        pfc("mean_pause_ns"),
    ),
    _run("warnings", "PFC warnings", "", "PFC warnings of switches.", summary("rlb.warnings_sent"), _RLB),
    _of_rlb("recirculations", "recirculations", "", "Recirculations.", summary("recirculations.total")),
    _of_rlb(
        "recirculations_per_packet",
        "recirculations per packet",
        "%",
        "Recirculations over data packets delivered.",
        summary("recirculations.mean"),
    ),
    _of_rlb(
        "recirculations_max",
        "most recirculations of a packet",
        "",
        "Most recirculations of a single packet at one switch.",
        summary("recirculations.most"),
    ),
    _run("cnps", "CNPs", "", "CNPs that senders received.", summary("dcqcn.cnps_received"), "DCQCN", "less"),
    _run(
        "flowlets",
        "flowlets",
        "",
        "Flowlets at switches with hosts.",
        summary(f"flowlets.{FLOWLETS_AT_LEAVES}"),
        "HF2T Table 2",
    ),
    _run(
        "marked_share",
        "packets marked",
        "%",
        "Data packets that arrived with an ECN mark, over all that arrived; with the scheme `program`.",
        marked_share,
        "RFC 3168",
    ),
    _run(
        "ping_rtt_mean",
        "mean RTT of pings",
        "us",
        "Mean time from an ICMP echo request to its reply.",
        summary("pings.rtt_mean_ns"),
        "RFC 792",
        "less",
    ),
    _run(
        "ping_rtt_p99",
        "p99 RTT of pings",
        "us",
        "99th percentile of the time from an ICMP echo request to its reply.",
        summary("pings.rtt_p99_ns"),
        "RFC 792",
        "less",
    ),
    _run(
        "ping_lost_share",
        "pings lost",
        "%",
        "ICMP echo requests without a reply, over all requests.",
        pings_lost_share,
        "RFC 792",
        "less",
    ),
    _of_hf2t("stretched", "gaps stretched", "", "Gaps that NICs stretched.", summary("hf2t.stretched")),
    _of_hf2t(
        "natural",
        "natural gaps",
        "",
        "Gaps longer than the flowlet threshold, which NICs did not stretch.",
        summary("hf2t.natural"),
    ),
    _of_hf2t(
        "stretch", "mean stretch of a gap", "us", "Mean time by which a gap was stretched.", mean_stretch
    ),
    _of_hf2t(
        "trainings",
        "trainings",
        "",
        "Number of times that NICs learnt T, the threshold of gaps.",
        summary("hf2t.trainings"),
    ),
    _of_gaps(
        "gaps", "gaps", "", "Gaps between packets of a flow.", if_any("gaps.count", summary("gaps.count"))
    ),
    _of_gaps("gap_p50", "median gap", "us", "Median of the gaps.", gap_quantile(5000)),
    _of_gaps("gap_p99", "p99 gap", "us", "99th percentile of the gaps.", gap_quantile(9900)),
    _of_gaps("gap_p999", "p99.9 gap", "us", "99.9th percentile of the gaps.", gap_quantile(9990)),
    *(
        _of_gaps(
            f"gaps_{rtts}rtt",
            f"gaps ≥ {'' if rtts == 1 else f'{rtts} '}RTT",
            "%",
            f"Gaps of at least {rtts} base RTT, over all gaps.",
            summary(f"gaps.at_least_{rtts}_rtt", "gaps.count"),
        )
        for rtts in RTTS  # the multiples of the base RTT with which gaps are compared
    ),
    _of_gaps(
        "rtt",
        "base RTT",
        "us",
        "Round-trip time of a full frame on the longest path of the idle network.",
        if_any("gaps.count", summary("gaps.rtt_ns")),
    ),
    _run(
        "failures",
        "failures detected",
        "",
        "Failures that switches detected.",
        summary("rlb.failures_found"),
        "RLB §IV-B2",
    ),
    _flows(
        "overtaken",
        "packets overtaken",
        "",
        "First transmissions that arrived after a later packet of their flow.",
        sum_of("overtaken"),
        "RFC 4737",
        "less",
    ),
    _flows(
        "draining_share",
        "time spent draining",
        "%",
        "Mean over the flows of the share of the FCT for which they were stopped to drain.",
        draining_share,
        "Flowcut Table IV",
        "less",
    ),
    _flows(
        "drains",
        "drains",
        "",
        "Number of times that flows drained.",
        sum_of("drains"),
        "Flowcut §II-B",
        "less",
    ),
    _flows(
        "path_changes",
        "path changes",
        "",
        "Pairs of consecutive first transmissions of a flow that took different paths.",
        sum_of("path_changes"),
    ),
    _flows(
        "retransmitted",
        "retransmitted packets",
        "",
        "Retransmissions sent.",
        sum_of("retransmitted"),
        "",
        "less",
    ),
    _run("lost", "lost packets", "", "Data packets dropped or trimmed.", lost, "Spritz Fig. 6", "less"),
    _flows("timeouts", "timeouts", "", "Retransmission timeouts.", sum_of("timeouts"), "RFC 6298", "less"),
    _flows("blocked", "paths blocked", "", "Paths blocked after a timeout.", sum_of("blocked"), _SPRITZ),
    _flows(
        "explored", "explored packets", "", "Packets on paths chosen at random.", sum_of("explored"), _SPRITZ
    ),
    _run(
        "throughput",
        "throughput",
        "Gb/s",
        "Mean rate at which switches sent to hosts, with headers and acknowledgements.",
        summary("sampled.throughput_bps.mean"),
        "",
        "more",
    ),
    _run(
        "utilisation",
        "link utilisation",
        "%",
        "Mean utilisation of the links between switches.",
        summary("sampled.utilisation.mean"),
        _CONGA,
    ),
    _run(
        "imbalance",
        "uplink imbalance",
        "",
        "Mean over switches and intervals of (max - min) / mean of the utilisation of uplinks.",
        summary("sampled.imbalance.mean"),
        _CONGA,
        "less",
    ),
    _run(
        "queue_p99",
        "p99 queue length",
        "KiB",
        "99th percentile of queue lengths over ports and samples.",
        summary("sampled.queue_bytes.p99"),
        _CONGA,
        "less",
    ),
    _of_pfc(
        "paused_share",
        "ports paused",
        "%",
        "Samples in which PFC paused the port, over all samples of all ports (exact: pause_share).",
        summary("sampled.paused_share"),
    ),
    _run(
        "fct_fair",
        "mean FCT of fair sharing",
        "us",
        "Mean FCT of the flows as fluids under max-min fairness over all paths.",
        summary("fair.fct_mean_ns"),
        _FAIR,
    ),
    _run(
        "slowdown_fair",
        "mean slowdown of fair sharing",
        "times",
        "Mean slowdown of the flows as fluids under max-min fairness over all paths.",
        summary("fair.slowdown_mean"),
        _FAIR,
    ),
    _flows(
        "completed_share",
        "flows completed",
        "%",
        "Flows that finished, over all flows.",
        completed_share,
        "",
        "more",
    ),
    Metric("gap", "flowlet gap", "us", "Flowlet gap with the least mean FCT of all values tried.", "LetFlow"),
    Metric("memory", "memory", "KiB", "State of a switch or NIC.", "Flowcut §III-A, Spritz Fig. 3", "less"),
    Metric(
        "packet_bytes", "extra bytes per packet", "B", "Bytes added to a packet.", "Flowcut §III-A1", "less"
    ),
    Metric("flow_bytes", "extra bytes per flow", "B", "Bytes of state of a flow.", "Flowcut §III-A2", "less"),
    Metric(
        "overhead",
        "overhead at 1 KiB",
        "%",
        "Bytes added to a packet, as a share of 1024 bytes.",
        "Flowcut §III-A1",
        "less",
    ),
    Metric(
        "paths", "most paths per pair", "", "Largest number of paths between two switches.", "Spritz Fig. 3"
    ),
    Metric("latency", "latency", "ns", "One-way latency of a path of the idle network.", "Spritz Table I"),
    Metric(
        "types",
        "path types",
        "",
        "Number of types of paths; a type is minimal or not, and has so many local and global links.",
        "Spritz Table I",
    ),
)
METRICS = {entry.name: entry for entry in _BUILT_IN}
"""All metrics by name; the metrics of loaded plug-ins come last."""

BUILT_IN = tuple(METRICS)


def metrics() -> Mapping[str, Metric]:
    """METRICS, after loading plug-ins."""
    plugins.load()
    return METRICS


def plugin_metrics() -> Mapping[str, Metric]:
    """The metrics of plug-ins by name."""
    return {name: entry for name, entry in metrics().items() if name not in BUILT_IN}


def register(
    name: str, title: str, unit: str = "", *, definition: str = "", source: str = "", better: str = ""
) -> Callable[[Compute], Compute]:
    """Registers a function that computes a metric of a run; used as a decorator of the function.

    Args:
        name: the name in files and claims; a key of summary.json's `metrics`.
        title: the title of the metric's column or axis.
        unit: one of units.py; the function returns times in ns, sizes in bytes, shares from 0 to 1.
        definition: one sentence that defines the metric.
        source: the paper or standard that defines the metric.
        better: whether `less` or `more` is better, or empty.

    Raises:
        SpecError: the name is invalid or taken, or the unit is not known.
    """
    check_name("metric", name)
    if name in METRICS:
        raise SpecError(f"metric {name!r} is registered twice")
    if unit not in UNITS:
        units = ", ".join(each or "''" for each in UNITS)
        raise SpecError(f"metric {name!r}: unit {unit!r} is not known; expected one of {units}")
    if not title.strip() or one_line(title, MAX_TITLE) != title:
        raise SpecError(f"metric {name!r}: expected a title on one line of at most {MAX_TITLE} characters")
    if better not in ("less", "more", ""):
        raise SpecError(f"metric {name!r}: better {better!r}: expected less, more or ''")

    def add(compute: Compute) -> Compute:
        METRICS[name] = Metric(name, title, unit, definition, source, better, by_class=True, compute=compute)
        return compute

    return add


def metric(name: str) -> Metric:
    """The metric with this name; a name such as `fct_p99_of_bystander` is a metric of one class of flows.

    Raises:
        SpecError: there is no such metric.
    """
    base, flow_class = split_class(name)
    all_metrics = metrics()
    entry = all_metrics.get(base)
    if entry is None or (flow_class and not entry.by_class):
        classes = f"one of them followed by {CLASS} and a class of flows ({', '.join(CLASSES)})"
        raise SpecError(f"metric {unknown(name, all_metrics, classes)}")
    return replace(entry, name=name, title=f"{entry.title}, {flow_class}") if flow_class else entry


def split_class(name: str) -> tuple[str, str]:
    """The name of a metric without its class of flows, and the class, which is empty if there is none."""
    base, _, flow_class = name.rpartition(CLASS)
    return (base, flow_class) if flow_class in CLASSES else (name, "")


def measure(result: Result) -> dict[str, float]:
    """Every metric that a run has, by name.

    If flows have classes, each metric that is `by_class` is also computed for each class. A plug-in's metric
    that was computed when the run ended is read from the summary.

    Raises:
        SpecError: a plug-in's metric failed, or is not a number; the message names its file.
    """
    if result.metrics is not None:
        return dict(result.metrics)
    values = _measure(result, metrics())
    by_class = {name: entry for name, entry in metrics().items() if entry.by_class}
    for flow_class in dict.fromkeys(row.flow_class for row in result.rows if row.flow_class):
        of_class = _measure(_only(result, flow_class), by_class)
        values |= {f"{name}{CLASS}{flow_class}": value for name, value in of_class.items()}
    return values


def measure_plugins(result: Result) -> dict[str, float]:
    """The metrics of a run that plug-ins define.

    Raises:
        SpecError: as in `measure`.
    """
    return _measure(result, plugin_metrics())


def _measure(result: Result, wanted: Mapping[str, Metric]) -> dict[str, float]:
    stored = result.summary.metrics or {}
    values = {
        name: stored[name] if name in stored else _value(entry, result) for name, entry in wanted.items()
    }
    return {name: value for name, value in values.items() if value is not None}


def _value(entry: Metric, result: Result) -> float | None:
    if entry.compute is None or entry.name in BUILT_IN:
        return None if entry.compute is None else entry.compute(result)
    with plugins.blamed(f"metric {entry.name}", entry.compute):
        value: Any = entry.compute(result)
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        place = plugins.place_of(entry.compute)
        problem = f"expected a finite number or None, found {one_line(repr(value), 80)}"
        raise SpecError(f"metric {entry.name}: {problem}{place and f' ({place})'}")
    return float(value)


def _only(result: Result, flow_class: str) -> Result:
    """The result reduced to the flows of one class, which are then measured even if they are background."""
    rows = tuple(replace(row, flow_class=NO_CLASS) for row in result.rows if row.flow_class == flow_class)
    completed = sum(row.end_ns is not None for row in rows)
    changed = structs.replace(
        result.summary, flows=len(rows), completed=completed, packets=packets(rows), metrics=UNSET
    )
    return replace(result, rows=rows, summary=changed)
