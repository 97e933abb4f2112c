# SPDX-License-Identifier: Apache-2.0
"""Computes the result (rows and summary) of one run from the plan and the measurements of a backend.

The plan's `job` is what the backend executes: topology, flows, NICs. The *case* of a run is the name of its
faults. *Ranks* are the processes that simulate a network together. *Gaps* are the times between packets of a
flow. With HF2T (host-based flowlet fine-tuning), NICs stretch gaps to the flowlet gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, UnsetType, structs

from tailrace.experiments.plan.plan import Plan
from tailrace.experiments.plan.spec_list import case_name
from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.experiments.workloads.interval import Interval
from tailrace.hosts.gaps.hf2t import UNKNOWN
from tailrace.hosts.measured import Learned
from tailrace.hosts.options.nic import ALGORITHMS, DCQCN, HERMES, STEERABLE
from tailrace.p4rt.counters import trimmed
from tailrace.p4rt.events import CHANGES, Event
from tailrace.results.fair import FairSharing
from tailrace.results.frames import host_counts, ping_summary
from tailrace.results.metrics import measure_plugins
from tailrace.results.queues import queues_of
from tailrace.results.result import Result
from tailrace.results.rows import FlowRow, make_row, measured_rows
from tailrace.results.sampled import summary as sampled
from tailrace.results.statistics import percentile
from tailrace.results.steady import Steady, steady_of
from tailrace.results.summary import (
    Summary,
    classes,
    column_sums,
    completion,
    counters,
    flowlets,
    known,
    packets,
    recirculations,
    slowdown,
)
from tailrace.schemes.base import SCHEMES
from tailrace.sim.errors import RunError
from tailrace.sim.ideal import Ideal
from tailrace.sim.outcome import Outcome
from tailrace.spec import parse, plugins
from tailrace.spec.version import VERSION
from tailrace.topology.timing import base_rtt_ns

MOST_CHANGES = 8
"""Changes by hand that a summary lists."""

SPRITZ = "spritz"
"""The summary's key for Spritz and for its baselines in NICs; other NIC algorithms have their own key."""


def result_of(
    planned: Plan, outcome: Outcome, label: str, usage: Mapping[str, Any] = MappingProxyType({})
) -> Result:
    """The result of a run of a plan, from the measurements of a backend.

    Args:
        planned: the plan that was run.
        outcome: the measurements.
        label: short name of the scheme.
        usage: CPU time, memory and machine, by keys of the summary.

    Raises:
        SpecError: a metric of a plug-in failed.
        RunError: the measured flows are not those of the plan.
    """
    case, described = case_name(planned.experiment.faults), _described(planned)
    rows = _rows(planned, outcome)
    summary = Summary(**described, **_measured(planned, outcome, rows), **_execution(outcome), **usage)
    measured = summary, rows, outcome.timelines, outcome.events, outcome.gaps
    job = None if outcome.timelines.record is None else planned.job
    result = Result(case, label, *measured, frames=outcome.frames, job=job)
    metrics = measure_plugins(result)
    return replace(result, summary=structs.replace(summary, metrics=metrics)) if metrics else result


def _rows(planned: Plan, outcome: Outcome) -> tuple[FlowRow, ...]:
    """One row for each flow of the job, with the names of its hosts and its ideal completion time."""
    job = planned.job
    ideal = Ideal(job.topology, job.nic.mtu_bytes, delays=outcome.delays)
    records = {record.id: record for record in outcome.records}
    if len(records) != len(outcome.records) or records.keys() != {flow.id for flow in job.flows}:
        raise RunError("the run did not report each of its flows exactly once")
    host = job.topology.host_by_ip
    return tuple(
        make_row(
            records[flow.id],
            src=host(flow.src).name,
            dst=host(flow.dst).name,
            # the entries of a user's program may lead flows over longer paths than the shortest
            ideal_fct_ns=None if job.scheme.is_foreign else ideal.fct_ns(flow),
            flow_class=planned.classes.get(flow.id, NO_CLASS),
        )
        for flow in job.flows
    )


def _described(planned: Plan) -> dict[str, Any]:
    """The keys of a summary that describe the experiment."""
    experiment, job = planned.experiment, planned.job
    return {
        "scheme": experiment.scheme,
        "variant": parse(experiment.scheme, "scheme").options.get("variant", UNSET),
        "topology": experiment.topology,
        "workload": experiment.workload or "",
        "target": planned.target,
        "seed": experiment.seed,
        "faults": experiment.faults,
        "option_string": structs.replace(experiment, target=planned.target).option_string,
        "time_scale": job.time_scale,
        "transport": job.nic.transport,
        "window_bytes": job.nic.window_bytes or UNSET,
        "queues": queues_of(job),
        "mtu_bytes": job.nic.mtu_bytes,
        "version": VERSION,
        "plugins": dict(plugins.digest()) or UNSET,
    }


def _measured(planned: Plan, outcome: Outcome, rows: tuple[FlowRow, ...]) -> dict[str, Any]:
    """The keys of a summary that have measurements."""
    topology, nic, gaps = planned.job.topology, planned.job.nic, outcome.gaps
    is_foreign = planned.job.scheme.is_foreign
    # the names of a user's counters have no meaning here
    by_switch = {} if is_foreign else outcome.counters
    scheme_sums = scheme_counters(by_switch)
    if nic.steering is not None:
        algorithm = nic.steering.algorithm
        # ALGORITHMS: the transport that each algorithm needs; that of Spritz and its baselines is STEERABLE
        scheme_sums[SPRITZ if ALGORITHMS[algorithm] == STEERABLE else algorithm] = column_sums(
            rows, "explored", "reused", "blocked"
        )
    measured, queues = measured_rows(rows), outcome.timelines.queues
    sharing = FairSharing(topology, nic.mtu_bytes, delays=outcome.delays)
    frame_bytes = planned.job.scheme.frame_bytes
    return {
        "flows": len(measured),
        "completed": sum(row.end_ns is not None for row in measured),
        "fct_ns": completion(measured),
        "slowdown": slowdown(measured),
        "classes": classes(rows),
        "pfc": UNSET if outcome.pfc is None else outcome.pfc.document(),
        "deadlock": outcome.deadlock or UNSET,
        "packets": packets(
            rows, dropped=outcome.dropped, data=outcome.data, trimmed=trimmed(by_switch.values())
        ),
        **column_sums(rows, "path_changes", "drains", "drained_ns", "timeouts"),
        "sampled": UNSET if queues is None else sampled(queues, topology),
        "steady": _steady(planned, rows),
        "fair": sharing.of(measured),
        "flowcut": scheme_sums.pop("flowcut", UNSET),
        "flowlets": flowlets(by_switch, {host.switch for host in topology.hosts}),
        # with the shares of gaps of at least one or more base RTTs
        "gaps": UNSET if gaps is None else gaps.summary(base_rtt_ns(topology, frame_bytes)),
        "hf2t": UNSET if nic.hf2t is None else _hf2t(rows, outcome.learned),
        "rlb": scheme_sums.pop("rlb", UNSET),
        "spritz": scheme_sums.pop(SPRITZ, UNSET),
        "hermes": scheme_sums.pop(HERMES, UNSET),
        "recirculations": recirculations(by_switch, sum(row.received for row in rows)),
        "dcqcn": column_sums(rows, "cnps_sent", "cnps_received") if nic.transport == DCQCN else UNSET,
        "counters": (
            {name: dict(values) for name, values in outcome.counters.items() if values}
            if is_foreign
            else scheme_sums
        )
        or UNSET,
        "pings": ping_summary(outcome.frames),
        "hosts": host_counts(outcome.frames),
    }


def _steady(planned: Plan, rows: Sequence[FlowRow]) -> Steady | UnsetType:
    """The steady state of a run whose workload has a measuring interval."""
    workload = planned.experiment.parsed.workload
    interval = None if workload is None else getattr(workload.pattern, "measure", None)
    if not isinstance(interval, Interval):
        return UNSET
    return steady_of(rows, Interval(*(round(planned.job.time_scale * time_ns) for time_ns in interval)))


def _hf2t(rows: Sequence[FlowRow], nics: Sequence[Learned]) -> dict[str, int]:
    """HF2T §4: sums over the flows and NICs, and minimum, median and maximum of T over the NICs that have
    learnt it. T is the gap in ns above which a NIC stretches gaps; `natural`: gaps that exceeded the flowlet
    gap without being stretched; `trainings`: how often NICs learnt T.
    """
    values = column_sums(rows, "stretched", "stretched_ns", "natural")
    values["trainings"] = sum(nic.trainings for nic in nics)
    learnt = sorted(nic.t_ns for nic in nics if nic.t_ns != UNKNOWN)
    if learnt:
        values |= {"t_ns_least": learnt[0], "t_ns_median": percentile(learnt, 50), "t_ns_most": learnt[-1]}
    return values


def _execution(outcome: Outcome) -> dict[str, Any]:
    """The keys of a summary that describe how the run was executed."""
    # `known` of None is UNSET, so that the key is absent from summary.json
    hops, ranks = outcome.packet_hops, outcome.by_rank if len(outcome.by_rank) > 1 else ()
    return {
        "p4_sha256": known(outcome.p4_sha256),
        "virtual_ns": known(outcome.virtual_ns),
        "nics": known(outcome.nics),
        "wall_s": outcome.wall_s,
        "traffic_s": known(outcome.traffic_s),
        "ranks": len(ranks) or UNSET,
        "by_rank": tuple(map(structs.asdict, ranks)) or UNSET,
        "packet_hops": known(hops),
        "packet_hops_per_s": UNSET if hops is None or outcome.wall_s <= 0 else hops / outcome.wall_s,
        "trace_sha256": known(outcome.trace_sha256),
        "overloaded": bool(outcome.overload_reasons),
        "overload_reasons": outcome.overload_reasons,
        "not_applied": outcome.not_applied or UNSET,  # settings that the target ignored or changed
        "changes": _changes(outcome.events) or UNSET,
    }


def _changes(events: Sequence[Event]) -> tuple[str, ...]:
    """The first MOST_CHANGES changes by hand, and the number of the others."""
    texts = tuple(event.text for event in events if event.kind in CHANGES)
    more = len(texts) - MOST_CHANGES
    return (*texts[:MOST_CHANGES], f"{more} more changes, in events.jsonl") if more > 0 else texts


def scheme_counters(by_switch: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Sums over all switches of the counters that only some schemes have, by the scheme's name."""
    by_scheme = {
        entry.name: counters(by_switch, entry.struct.counters) for entry in SCHEMES if entry.struct.counters
    }
    return {name: sums for name, sums in by_scheme.items() if not isinstance(sums, UnsetType)}
