# SPDX-License-Identifier: Apache-2.0
"""One run: a plan -> what a backend measured -> rows and summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, UnsetType, structs

from tailrace.experiments.plan.plan import Plan
from tailrace.experiments.plan.spec_list import case_name
from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.hosts.options.nic import ALGORITHMS, DCQCN, HERMES, STEERABLE
from tailrace.p4rt.counters import trimmed
from tailrace.results.fair import FairSharing
from tailrace.results.hf2t import summary as hf2t_summary
from tailrace.results.metrics import measure_plugins
from tailrace.results.queues import queues_of
from tailrace.results.result import Result
from tailrace.results.rows import FlowRow, make_row, measured_rows
from tailrace.results.sampled import summary as sampled
from tailrace.results.summary import (
    Summary,
    classes,
    completion,
    counters,
    flowlets,
    known,
    notifications,
    packets,
    recirculations,
    slowdown,
    steering,
)
from tailrace.schemes.base import SCHEMES
from tailrace.sim.errors import RunError
from tailrace.sim.ideal import Ideal
from tailrace.sim.outcome import Backend, Outcome, Progress, Report
from tailrace.spec import parse, plugins
from tailrace.study.machine import Usage
from tailrace.topology.timing import base_rtt_ns

SPRITZ = "spritz"
"""The key of a summary for Spritz in NICs and for those that it is compared with; others have one each."""

NO_USAGE: Mapping[str, Any] = MappingProxyType({})


def run(
    planned: Plan, backend: Backend, report: Report, *, label: str, pcap_dir: Path | None = None
) -> Result:
    """Run a plan to its end.

    Args:
        planned: what to run.
        backend: runs it.
        report: is called with the progress.
        label: short name of the scheme.
        pcap_dir: folder for captures of every link; None: no captures.

    Raises:
        SpecError: the target cannot do what was asked for.
        SpecError: a metric, or what NICs do, is from outside and failed.
        RunError: the run failed, or measured something else than it was given.
    """
    usage = Usage()
    with plugins.blamed(label, *_parts(planned)):
        outcome = backend.run(structs.replace(planned.job, pcap_dir=pcap_dir), report)
        if outcome.pfc is not None and outcome.pfc.storms:
            report(Progress("traffic", note=outcome.pfc.storm_note))
        return result_of(planned, outcome, label, usage.taken() if planned.target == "virtual" else NO_USAGE)


def result_of(planned: Plan, outcome: Outcome, label: str, usage: Mapping[str, Any] = NO_USAGE) -> Result:
    """The result of a run of a plan, from what a backend measured.

    Args:
        planned: what ran.
        outcome: what was measured.
        label: short name of the scheme.
        usage: what of the machine was used, by keys of the summary.

    Raises:
        SpecError: a metric is from outside and failed.
        RunError: something else was measured than was to run.
    """
    rows = _rows(planned, outcome)
    case, summary = case_name(planned.experiment.faults), _summary(planned, outcome, rows)
    summary = structs.replace(summary, **usage)
    result = Result(case, label, summary, rows, outcome.timelines, outcome.events, outcome.gaps)
    metrics = measure_plugins(result)
    return replace(result, summary=structs.replace(summary, metrics=metrics)) if metrics else result


def _parts(planned: Plan) -> tuple[object, ...]:
    """What of a run a plug-in may have defined."""
    parsed = planned.experiment.parsed
    traffic = () if parsed.workload is None else (parsed.workload.pattern,)
    return planned.job.scheme, *(fault.kind for fault in parsed.faults), *traffic


def _rows(planned: Plan, outcome: Outcome) -> tuple[FlowRow, ...]:
    """One row for each flow of the job, with its hosts' names and its ideal time."""
    ideal = Ideal(planned.topology, planned.job.nic.mtu_bytes, delays=outcome.delays)
    records = {record.id: record for record in outcome.records}
    if len(records) != len(outcome.records) or records.keys() != {flow.id for flow in planned.job.flows}:
        raise RunError("the run did not report each of its flows exactly once")
    host = planned.topology.host_by_ip
    return tuple(
        make_row(
            records[flow.id],
            src=host(flow.src).name,
            dst=host(flow.dst).name,
            ideal_fct_ns=ideal.fct_ns(flow),
            flow_class=planned.classes.get(flow.id, NO_CLASS),
        )
        for flow in planned.job.flows
    )


def _summary(planned: Plan, outcome: Outcome, rows: tuple[FlowRow, ...]) -> Summary:
    experiment, hops = planned.experiment, outcome.packet_hops
    of_schemes, chosen = scheme_counters(outcome), planned.job.nic.steering
    if chosen is not None:
        key = SPRITZ if ALGORITHMS[chosen.algorithm] == STEERABLE else chosen.algorithm
        of_schemes[key] = steering(rows)
    counted, queues = measured_rows(rows), outcome.timelines.queues
    delivered = sum(row.received for row in rows)
    sharing = FairSharing(planned.topology, planned.job.nic.mtu_bytes, delays=outcome.delays)
    return Summary(
        scheme=experiment.scheme,
        variant=parse(experiment.scheme, "scheme").options.get("variant", UNSET),
        topology=experiment.topology,
        workload=experiment.workload or "",
        target=planned.target,
        seed=experiment.seed,
        faults=experiment.faults,
        option_string=structs.replace(experiment, target=planned.target).option_string,
        time_scale=planned.job.time_scale,
        transport=planned.job.nic.transport,
        window_bytes=planned.job.nic.window_bytes or UNSET,
        queues=queues_of(planned.job),
        mtu_bytes=planned.job.nic.mtu_bytes,
        version=known(installed_version()),
        p4_sha256=known(outcome.p4_sha256),
        flows=len(counted),
        completed=sum(row.end_ns is not None for row in counted),
        fct_ns=completion(counted),
        slowdown=slowdown(counted),
        classes=classes(rows),
        pfc=UNSET if outcome.pfc is None else outcome.pfc.document(),
        deadlock=outcome.deadlock or UNSET,
        packets=packets(
            rows,
            dropped=outcome.dropped,
            data=outcome.data,
            trimmed=trimmed(outcome.counters.values()),
        ),
        path_changes=sum(row.path_changes for row in rows),
        drains=sum(row.drains for row in rows),
        drained_ns=sum(row.drained_ns for row in rows),
        timeouts=sum(row.timeouts for row in rows),
        sampled=UNSET if queues is None else sampled(queues, planned.topology),
        fair=sharing.of(counted),
        flowcut=of_schemes.pop("flowcut", UNSET),
        flowlets=flowlets(outcome.counters, {host.switch for host in planned.topology.hosts}),
        gaps=UNSET
        if outcome.gaps is None
        else outcome.gaps.summary(base_rtt_ns(planned.topology, planned.job.scheme.frame_bytes)),
        hf2t=UNSET if planned.job.nic.hf2t is None else hf2t_summary(rows, outcome.learned),
        rlb=of_schemes.pop("rlb", UNSET),
        spritz=of_schemes.pop(SPRITZ, UNSET),
        hermes=of_schemes.pop(HERMES, UNSET),
        recirculations=recirculations(outcome.counters, delivered),
        dcqcn=notifications(rows) if planned.job.nic.transport == DCQCN else UNSET,
        plugins=dict(plugins.digest()) or UNSET,
        virtual_ns=known(outcome.virtual_ns),
        nics=known(outcome.nics),
        wall_s=outcome.wall_s,
        traffic_s=known(outcome.traffic_s),
        ranks=len(outcome.by_rank) if len(outcome.by_rank) > 1 else UNSET,
        by_rank=tuple(map(asdict, outcome.by_rank)) if len(outcome.by_rank) > 1 else UNSET,
        packet_hops=known(hops),
        packet_hops_per_s=UNSET if hops is None or outcome.wall_s <= 0 else hops / outcome.wall_s,
        trace_sha256=known(outcome.trace_sha256),
        overloaded=bool(outcome.overload_reasons),
        overload_reasons=outcome.overload_reasons,
        not_applied=outcome.not_applied or UNSET,
        counters=of_schemes or UNSET,
    )


def scheme_counters(outcome: Outcome) -> dict[str, dict[str, int]]:
    """Sums of the counters that schemes have for themselves, by the scheme's name."""
    by_scheme = {
        entry.name: counters(outcome.counters, entry.struct.counters)
        for entry in SCHEMES
        if entry.struct.counters
    }
    return {name: sums for name, sums in by_scheme.items() if not isinstance(sums, UnsetType)}


def installed_version() -> str | None:
    """The version of the installed package; None where it runs from a folder that is not installed."""
    try:
        return version("tailrace")
    except PackageNotFoundError:
        return None
