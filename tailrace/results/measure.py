# SPDX-License-Identifier: Apache-2.0
"""What papers plot, computed from the rows and the summary of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import UnsetType, structs

from tailrace.experiments.workloads.classes import CLASSES, PLAIN
from tailrace.hosts.measured import GapSummary
from tailrace.results.metrics import Metric, added, reserve
from tailrace.results.over_seeds import Measure
from tailrace.results.result import Result
from tailrace.results.rows import FlowRow, measured_rows
from tailrace.results.sampled import Sampled
from tailrace.results.statistics import mean, percentile
from tailrace.results.summary import packets
from tailrace.results.units import UNITS
from tailrace.spec import SpecError
from tailrace.spec.suggest import unknown

CLASS = "_of_"
"""Between a metric and a class of flows: `fct_p99_of_bystander`."""


def _times(rows: Sequence[FlowRow]) -> list[int]:
    return [row.fct_ns for row in rows if row.fct_ns is not None]


def _percentile(percent: int) -> Callable[[Result], float | None]:
    def compute(result: Result) -> float | None:
        # a percentile of the flows that finished would flatter a run in which some did not
        return float(percentile(_times(_counted(result)), percent)) if result.complete else None

    return compute


def _counted(result: Result) -> tuple[FlowRow, ...]:
    """The flows that count: not those of the background."""
    return measured_rows(result.rows)


def _mean_fct(result: Result) -> float | None:
    return mean(_times(_counted(result))) if result.complete else None


def _runtime(result: Result) -> float | None:
    """From the first start to the last end."""
    rows = _counted(result)
    ends = [row.end_ns for row in rows if row.end_ns is not None]
    if len(ends) < len(rows):
        return None
    return float(max(ends) - min(row.start_ns for row in rows))


def _slowdown(result: Result) -> float | None:
    factors = [row.slowdown for row in _counted(result) if row.slowdown is not None]
    return mean(factors) if result.complete else None


def _slowdown_percentile(percent: int) -> Callable[[Result], float | None]:
    def compute(result: Result) -> float | None:
        factors = [row.slowdown for row in _counted(result) if row.slowdown is not None]
        return percentile(factors, percent) if result.complete else None

    return compute


def _out_of_order(result: Result) -> float | None:
    """First transmissions that arrived when another PSN was expected, over all of them that arrived."""
    share = result.summary.packets.out_of_order_fraction
    return share if isinstance(share, float) else None


def _out_of_order_raw(result: Result) -> float | None:
    """Arrivals with another PSN than the transport expected, over all (Flowcut §III-C2, Spritz Fig. 6)."""
    share = result.summary.packets.out_of_order_raw_fraction
    return share if isinstance(share, float) else None


def _ood_percentile(percent: int) -> Callable[[Result], float]:
    """Over the flows, each with its largest degree: how far an arrival was ahead of the one expected."""
    return lambda result: float(percentile([row.ood_max for row in _counted(result)], percent))


def _pfc(
    compute: Callable[[Mapping[str, int | float], int], float | None],
) -> Callable[[Result], float | None]:
    """Something of what PFC did, and of data packets delivered; none where there is no PFC."""

    def found(result: Result) -> float | None:
        pfc, delivered = result.summary.pfc, result.summary.packets.delivered
        if isinstance(pfc, UnsetType) or isinstance(delivered, UnsetType) or not delivered:
            return None
        value = compute(pfc, delivered)
        return None if value is None else float(value)

    return found


def _rlb(name: str) -> Callable[[Result], float | None]:
    """A counter of all switches that run RLB."""

    def found(result: Result) -> float | None:
        counters = result.summary.rlb
        return None if isinstance(counters, UnsetType) else float(counters[name])

    return found


def _recirculations(name: str) -> Callable[[Result], float | None]:
    """How often packets went round, where a program lets them."""

    def found(result: Result) -> float | None:
        seen = result.summary.recirculations
        return None if isinstance(seen, UnsetType) else float(getattr(seen, name))

    return found


def _flowlets(result: Result) -> float | None:
    """Flowlets that leaf switches counted; none of programs without flowlets."""
    seen = result.summary.flowlets
    return None if isinstance(seen, UnsetType) else float(seen["flowlets_at_leaves"])


def _gaps(compute: Callable[[GapSummary], float]) -> Callable[[Result], float | None]:
    """Something of the gaps between packets of a flow, where NICs measured them and there were any."""

    def found(result: Result) -> float | None:
        gaps = result.summary.gaps
        return None if isinstance(gaps, UnsetType) or not gaps.count else compute(gaps)

    return found


def _gap(permyriad: int) -> Callable[[Result], float | None]:
    """A quantile of the gaps between packets of a flow."""

    def found(result: Result) -> float | None:
        return None if result.gaps is None or not result.gaps.count else result.gaps.quantile_ns(permyriad)

    return found


def _hf2t(compute: Callable[[Mapping[str, int]], float]) -> Callable[[Result], float | None]:
    """Something of what NICs with HF2T did."""

    def found(result: Result) -> float | None:
        seen = result.summary.hf2t
        return None if isinstance(seen, UnsetType) else compute(seen)

    return found


def _cnps(result: Result) -> float | None:
    """Congestion notifications that senders got; none of other transports than DCQCN."""
    seen = result.summary.dcqcn
    return None if isinstance(seen, UnsetType) else float(seen["cnps_received"])


def _lost(result: Result) -> float | None:
    """Data packets that no receiver has got whole: dropped, or trimmed (Spritz Fig. 6 calls both dropped)."""
    dropped, trimmed = result.summary.packets.dropped_data, result.summary.packets.trimmed
    if isinstance(dropped, UnsetType):
        return None
    return float(dropped + (0 if isinstance(trimmed, UnsetType) else trimmed))


def _sampled(compute: Callable[[Sampled], float | None]) -> Callable[[Result], float | None]:
    """Something of what samples of ports tell, where there are any."""

    def found(result: Result) -> float | None:
        seen = result.summary.sampled
        return None if isinstance(seen, UnsetType) else compute(seen)

    return found


def _imbalance(seen: Sampled) -> float | None:
    return None if isinstance(seen.imbalance, UnsetType) else seen.imbalance.mean


def _fair(name: str) -> Callable[[Result], float | None]:
    """The times of these flows under fair sharing."""

    def found(result: Result) -> float | None:
        times = result.summary.fair
        return None if isinstance(times, UnsetType) else float(getattr(times, name))

    return found


def _draining(result: Result) -> float | None:
    """Mean over the flows of the share of their run time for which they were stopped (Flowcut Table IV)."""
    shares = [row.drained_ns / row.fct_ns for row in _counted(result) if row.fct_ns]
    return mean(shares) if result.complete else None


def _whole(name: str) -> Callable[[Result], float | None]:
    """The sum of a column over the flows that count."""
    return lambda result: float(sum(getattr(row, name) for row in _counted(result)))


METRICS: Mapping[str, Metric] = {
    "fct_mean": Metric("mean FCT", "us", _mean_fct),
    "fct_p50": Metric("median FCT", "us", _percentile(50)),
    "fct_p95": Metric("p95 FCT", "us", _percentile(95)),
    "fct_p99": Metric("p99 FCT", "us", _percentile(99)),
    "fct_max": Metric("largest FCT", "us", _percentile(100)),
    "runtime": Metric("runtime", "us", _runtime),
    "slowdown_mean": Metric("mean slowdown", "times", _slowdown),
    "slowdown_p50": Metric("median slowdown", "times", _slowdown_percentile(50)),
    "slowdown_p95": Metric("p95 slowdown", "times", _slowdown_percentile(95)),
    "slowdown_p99": Metric("p99 slowdown", "times", _slowdown_percentile(99)),
    "slowdown_max": Metric("largest slowdown", "times", _slowdown_percentile(100)),
    "out_of_order": Metric("packets out of order", "%", _out_of_order),
    "out_of_order_raw": Metric("arrivals out of order", "%", _out_of_order_raw),
    "ood_max": Metric(
        "out-of-order degree", "", lambda result: float(max(row.ood_max for row in result.rows))
    ),
    "ood_p95": Metric("p95 of the out-of-order degree", "", _ood_percentile(95)),
    "ood_p99": Metric("p99 of the out-of-order degree", "", _ood_percentile(99)),
    "pauses": Metric("PFC pauses", "", _pfc(lambda pfc, _delivered: pfc["pauses"])),
    "pause_rate": Metric("PFC pauses a packet", "%", _pfc(lambda pfc, delivered: pfc["pauses"] / delivered)),
    "pause_fraction": Metric("time paused", "%", _pfc(lambda pfc, _delivered: pfc["pause_fraction"])),
    "pause_length": Metric("mean pause", "us", _pfc(lambda pfc, _delivered: pfc.get("mean_pause_ns"))),
    "warnings": Metric("PFC warnings", "", _rlb("warnings_sent")),
    "recirculated": Metric("recirculations", "", _recirculations("total")),
    "recirculations": Metric("recirculations a packet", "%", _recirculations("mean")),
    "recirculations_most": Metric("recirculations of a packet at most", "", _recirculations("most")),
    "cnps": Metric("CNPs", "", _cnps),
    "flowlets": Metric("flowlets", "", _flowlets),
    "stretched": Metric("gaps stretched", "", _hf2t(lambda seen: float(seen["stretched"]))),
    "natural": Metric("gaps long by themselves", "", _hf2t(lambda seen: float(seen["natural"]))),
    "stretch": Metric(
        "mean stretch of a gap", "us", _hf2t(lambda seen: seen["stretched_ns"] / max(seen["stretched"], 1))
    ),
    "trainings": Metric("trainings", "", _hf2t(lambda seen: float(seen["trainings"]))),
    "gaps": Metric("gaps", "", _gaps(lambda seen: float(seen.count))),
    "gap_p50": Metric("median gap", "us", _gap(5000)),
    "gap_p99": Metric("p99 gap", "us", _gap(9900)),
    "gap_p999": Metric("p99.9 gap", "us", _gap(9990)),
    "gaps_1rtt": Metric("gaps ≥ RTT", "%", _gaps(lambda seen: seen.at_least_1_rtt / seen.count)),
    "gaps_2rtt": Metric("gaps ≥ 2 RTT", "%", _gaps(lambda seen: seen.at_least_2_rtt / seen.count)),
    "gaps_3rtt": Metric("gaps ≥ 3 RTT", "%", _gaps(lambda seen: seen.at_least_3_rtt / seen.count)),
    "rtt": Metric("base RTT", "us", _gaps(lambda seen: float(seen.rtt_ns))),
    "failures": Metric("failures found", "", _rlb("failures_found")),
    "overtaken": Metric("packets overtaken", "", _whole("overtaken")),
    "draining": Metric("time spent draining", "%", _draining),
    "drains": Metric("drains", "", _whole("drains")),
    "path_changes": Metric("path changes", "", _whole("path_changes")),
    "retransmitted": Metric("retransmitted packets", "", _whole("retransmitted")),
    "lost": Metric("packets trimmed or dropped", "", _lost),
    "timeouts": Metric("timeouts", "", _whole("timeouts")),
    "blocked": Metric("paths blocked", "", _whole("blocked")),
    "explored": Metric("packets on paths drawn", "", _whole("explored")),
    "throughput": Metric("throughput", "Gb/s", _sampled(lambda seen: seen.throughput_bps.mean)),
    "utilisation": Metric("links used", "%", _sampled(lambda seen: seen.utilisation.mean)),
    "imbalance": Metric("imbalance of uplinks", "", _sampled(_imbalance)),
    "queue_p99": Metric("p99 of queues", "KiB", _sampled(lambda seen: float(seen.queue_bytes.p99))),
    "paused_share": Metric("ports paused", "%", _sampled(lambda seen: seen.paused_share)),
    "fct_fair": Metric("mean FCT of fair sharing", "us", _fair("fct_mean_ns")),
    "slowdown_fair": Metric("mean slowdown of fair sharing", "times", _fair("slowdown_mean")),
    "completed": Metric(
        "flows completed", "%", lambda result: result.summary.completed / result.summary.flows
    ),
    "gap": Metric("flowlet gap", "us"),
    "memory": Metric("memory", "KiB"),
    "packet_bytes": Metric("extra bytes a packet", "B"),
    "flow_bytes": Metric("extra bytes a flow", "B"),
    "overhead": Metric("overhead at 1 KiB", "%"),
    "paths": Metric("paths of a pair at most", ""),
    "latency": Metric("latency", "ns"),
    "types": Metric("path types", ""),
}
"""All metrics by the names that files and claims use. `gap` is what a search has chosen (tune.py); the last
ones are computed without a run (model.py: kinds)."""

reserve(tuple(METRICS))

_NOT_BY_CLASS = (
    *("lost", "pauses", "pause_rate", "pause_fraction", "pause_length"),
    *("warnings", "recirculated", "recirculations", "recirculations_most", "cnps", "failures"),
    *("flowlets", "stretched", "natural", "stretch", "trainings"),
    *("throughput", "utilisation", "imbalance", "queue_p99", "paused_share", "fct_fair", "slowdown_fair"),
    *("gaps", "gap_p50", "gap_p99", "gap_p999", "gaps_1rtt", "gaps_2rtt", "gaps_3rtt", "rtt"),
)
"""What nobody counts flow by flow."""


def metric(name: str) -> Metric:
    """The metric with a name; that of a class of flows is `fct_p99_of_bystander`.

    Raises:
        SpecError: there is none.
    """
    base, _, flow_class = name.rpartition(CLASS)
    if flow_class not in CLASSES:
        base, flow_class = name, ""
    known = {**METRICS, **added()}
    found = known.get(base)
    if found is None or (flow_class and base in _NOT_BY_CLASS):
        classes = f"one of them with {CLASS} and one of {', '.join(CLASSES)}"
        raise SpecError(f"metric {unknown(name, known, classes)}")
    return replace(found, title=f"{found.title}, {flow_class}") if flow_class else found


def named(name: str, before_unit: str = " ") -> str:
    """What a metric is called, with its unit in brackets if it has one.

    Raises:
        SpecError: there is no such metric.
    """
    one = metric(name)
    unit = UNITS[one.unit].name
    return f"{one.title}{before_unit}({unit})" if unit else one.title


def measure(result: Result) -> dict[str, float]:
    """Every metric of a run; what it does not have is absent.

    Where there are classes, each metric that can be told for a class alone is there for each class, too.
    """
    found = _measured(result, "")
    for name in dict.fromkeys(row.flow_class for row in result.rows if row.flow_class):
        found |= _measured(_only(result, name), f"{CLASS}{name}", _NOT_BY_CLASS)
    return found


def _measured(result: Result, suffix: str, without: Sequence[str] = ()) -> dict[str, float]:
    return {
        name + suffix: value
        for name, one in {**METRICS, **added()}.items()
        if one.compute is not None and name not in without
        if (value := one.compute(result)) is not None
    }


def over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, Measure]:
    """The metrics of runs that differ in their seeds only: means of what each has by itself, also of
    percentiles; what one lacks is absent.
    """
    names = dict.fromkeys(name for run in runs for name in run)
    return {
        name: Measure(tuple((run[name],) for run in runs))
        for name in names
        if all(name in run for run in runs)
    }


def plain(name: str) -> str:
    """The name of a metric without the class of flows."""
    base, _, flow_class = name.rpartition(CLASS)
    return base if flow_class in CLASSES else name


def _only(result: Result, flow_class: str) -> Result:
    """The result as if there were the flows of one class alone, and they counted."""
    rows = tuple(replace(row, flow_class=PLAIN) for row in result.rows if row.flow_class == flow_class)
    done = sum(row.end_ns is not None for row in rows)
    found = packets(rows)
    summary = structs.replace(result.summary, flows=len(rows), completed=done, packets=found)
    return replace(result, rows=rows, summary=summary)
