# SPDX-License-Identifier: Apache-2.0
"""One run: words -> a job for a backend -> what it measured -> rows and summary."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import UNSET, UnsetType

from tailrace.codec.sizes import wire_bytes
from tailrace.experiments.backends.job import Backend, Job, Outcome, Progress, Report
from tailrace.experiments.errors import RunError
from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan import budget, defaults
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.kernel_tcp import kernel_tcp
from tailrace.experiments.plan.known import topology_of
from tailrace.experiments.plan.nic import complete_scheme, nic_config, room_bytes, transport_of, window_bytes
from tailrace.experiments.plan.pause import check_emulated, pfc_of, with_pause
from tailrace.experiments.plan.pfc import REACTION_NS, Thresholds
from tailrace.experiments.plan.reckon import check_network, check_packets
from tailrace.experiments.plan.words import case_name, replace_option
from tailrace.experiments.results.hf2t import summary as hf2t_summary
from tailrace.experiments.results.ideal import Ideal
from tailrace.experiments.results.result import Result
from tailrace.experiments.results.rows import FlowRow, make_row, measured_rows
from tailrace.experiments.results.summary import (
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
from tailrace.experiments.workloads.classes import PLAIN, measured
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.options.nic import DCQCN, HERMES
from tailrace.hosts.options.transports import LINUX_TCP
from tailrace.p4rt.counters import trimmed
from tailrace.p4rt.target import target as switch_target
from tailrace.schemes.defaults import base_rtt_ns
from tailrace.schemes.registry import SchemeConfig, parse_scheme
from tailrace.schemes.spritz.frames import steered_scheme
from tailrace.topology import Topology
from tailrace.words import SpecError, parse
from tailrace.words.scale import scaled

RLB_COUNTERS = ("warnings_", "recirculations_refused", "probes_", "path_rtts_", "failures_")
"""What the names of RLB's own counters begin with."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that is ready to go: the job, the topology at its time scale, classes of flows by number."""

    experiment: Experiment
    target: str
    topology: Topology
    job: Job
    classes: Mapping[int, str]


def scale_of(experiment: Experiment, target: str) -> float:
    """The time scale of an experiment on a target: its own, or the smallest that this machine holds."""
    if experiment.time_scale is not None:
        return experiment.time_scale
    return budget.time_scale(topology_of(experiment.topology), target, experiment.mtu_bytes)


def workload_words(experiment: Experiment, target: str) -> str:
    """The words of what is sent, with the number of flows if there is one."""
    words = experiment.workload or defaults.workload(target)
    return words if experiment.flows is None else replace_option(words, "flows", str(experiment.flows))


def plan(experiment: Experiment, target: str) -> Plan:
    """Everything that can be worked out before anything runs.

    Args:
        experiment: the words.
        target: bmv2, native or virtual.

    Raises:
        SpecError: words that do not fit together.
    """
    scale = scale_of(experiment, target)
    full_speed = topology_of(experiment.topology)
    check_network(full_speed)
    topology = scaled(full_speed, scale)
    workload = parse_workload(workload_words(experiment, target))
    # one stream of numbers a purpose: another fault does not change the flows
    traffic = workload.traffic(full_speed, random.Random(f"workload {experiment.seed}"))
    try:
        check_dependencies(traffic.flows)
    except ConfigError as error:
        raise SpecError(f"workload: {error}") from error
    check_packets(traffic.flows, experiment.mtu_bytes)
    flows = [scaled(flow, scale) for flow in traffic.flows]
    faults = tuple(
        scaled(hit, scale)
        for number, words in enumerate(experiment.faults)
        for hit in parse_fault(words).resolve(topology, random.Random(f"fault {number} {experiment.seed}"))
    )
    mtu = experiment.mtu_bytes
    words, steered = steered_scheme(
        experiment.scheme, topology, scale, mtu, marks=any(flow.steering for flow in flows)
    )
    bounded = steered is not None
    transport = transport_of(experiment.transport, parse_scheme(words), steered=bounded)
    window = window_bytes(topology, target, experiment.window, steered=steered, transport=transport.name)
    scheme = complete_scheme(
        words,
        flows,
        faults,
        window=window,
        mtu=mtu,
        rate_bps=full_speed.fastest_bps,
        bounded=bounded,
        transport=transport.name,
        # PFC keeps a queue within its bounds without losses
        room=room_bytes(topology, target, transport) if experiment.pfc is None else None,
    )
    thresholds = _thresholds(experiment, target, topology, parse_scheme(scheme), scale)
    if thresholds is not None:
        scheme = with_pause(scheme, thresholds)
    if steered is None:
        # no other program does as single flows want
        flows = [replace(flow, steering="") if flow.steering else flow for flow in flows]
    nic = nic_config(
        topology,
        steered or scaled(parse_scheme(scheme), scale),
        transport=transport,
        window=window,
        mtu=mtu,
        reorder=experiment.reorder,
        scale=scale,
        switches=switch_target(target),
    )
    job = Job(
        topology=experiment.topology,
        scheme=scheme,
        target=target,
        seed=experiment.seed,
        flows=tuple(flows),
        nic=replace(nic, measure_gaps=True) if experiment.gaps else nic,
        faults=faults,
        time_scale=scale,
        pfc=thresholds,
        kernel_tcp=kernel_tcp(transport, parse_scheme(scheme), target, pfc=thresholds is not None),
        sample_ns=None if experiment.sample_ns is None else round(experiment.sample_ns * scale),
        watch=experiment.watch,
        background=frozenset(number for number, name in traffic.classes.items() if not measured(name)),
    )
    return Plan(experiment, target, topology, job, traffic.classes)


def _thresholds(
    experiment: Experiment, target: str, topology: Topology, scheme: SchemeConfig, scale: float
) -> Thresholds | None:
    """The thresholds of PFC, where the experiment has it, or the scheme cannot be without.

    Raises:
        SpecError: they contradict each other or the scheme, or the target has no PFC.
    """
    pfc = pfc_of(experiment.pfc, scheme, topology)
    if pfc is None:
        return None
    if target == "bmv2":
        check_emulated(pfc, scheme)
    frame_bytes = wire_bytes(experiment.mtu_bytes, experiment.mtu_bytes)[0]
    reaction_ns = 0 if target == "virtual" else REACTION_NS
    return pfc.of(topology, frame_bytes, reaction_ns, scale)


def run(
    planned: Plan, backend: Backend, report: Report, *, label: str, pcap_dir: Path | None = None
) -> Result:
    """Run a plan to its end.

    Args:
        planned: what to run.
        backend: runs it.
        report: is told how far it is.
        label: short name of the scheme.
        pcap_dir: folder for captures of every link; None: no captures.

    Raises:
        SpecError: the target cannot do what was asked for.
        RunError: the run failed, or measured something else than it was given.
    """
    outcome = backend.run(replace(planned.job, pcap_dir=pcap_dir), report)
    if outcome.pfc is not None and outcome.pfc.storms:
        report(Progress("traffic", note=outcome.pfc.storm_note))
    rows = _rows(planned, outcome)
    case, summary = case_name(planned.experiment.faults), _summary(planned, outcome, rows)
    return Result(case, label, summary, rows, outcome.timelines, outcome.events, outcome.gaps)


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
            flow_class=planned.classes.get(flow.id, PLAIN),
        )
        for flow in planned.job.flows
    )


def _steering(planned: Plan, rows: Sequence[FlowRow], *, hermes: bool) -> dict[str, int] | UnsetType:
    """What NICs did that choose paths, under the key of those that do so by Hermes, or of all others."""
    config = planned.job.nic.steering
    if config is None or (config.algorithm == HERMES) != hermes:
        return UNSET
    return steering(rows)


def _summary(planned: Plan, outcome: Outcome, rows: tuple[FlowRow, ...]) -> Summary:
    experiment, hops = planned.experiment, outcome.packet_hops
    counted = measured_rows(rows)
    delivered = sum(record.received for record in outcome.records)
    return Summary(
        scheme=experiment.scheme,
        variant=parse(experiment.scheme, "scheme").options.get("variant", UNSET),
        topology=experiment.topology,
        workload=workload_words(experiment, planned.target),
        target=planned.target,
        seed=experiment.seed,
        faults=experiment.faults,
        time_scale=planned.job.time_scale,
        transport=planned.job.nic.transport if planned.job.kernel_tcp is None else LINUX_TCP,
        window_bytes=planned.job.nic.window_bytes or UNSET,
        mtu_bytes=planned.job.nic.mtu_bytes,
        version=known(installed_version()),
        p4_sha256=known(outcome.p4_sha256),
        flows=len(counted),
        completed=sum(row.end_ns is not None for row in counted),
        fct_ns=completion(counted),
        slowdown=slowdown(counted),
        classes=classes(rows),
        pfc=UNSET if outcome.pfc is None else outcome.pfc.document(),
        packets=packets(
            rows,
            delivered=delivered,
            dropped=outcome.dropped,
            trimmed=trimmed(outcome.counters.values()),
            unobserved=outcome.unobserved,
        ),
        path_changes=UNSET if "path_changes" in outcome.unobserved else sum(row.path_changes for row in rows),
        drains=sum(row.drains for row in rows),
        drained_ns=sum(row.drained_ns for row in rows),
        flowcut=counters(outcome.counters, ("flowcut_", "xoff_", "xon_", "acks_")),
        flowlets=flowlets(outcome.counters, {host.switch for host in planned.topology.hosts}),
        gaps=UNSET if outcome.gaps is None else outcome.gaps.summary(base_rtt_ns(planned.topology)),
        hf2t=UNSET if planned.job.nic.hf2t is None else hf2t_summary(rows, outcome.learned),
        rlb=counters(outcome.counters, RLB_COUNTERS),
        recirculations=recirculations(outcome.counters, delivered),
        dcqcn=notifications(rows) if planned.job.nic.transport == DCQCN else UNSET,
        spritz=_steering(planned, rows, hermes=False),
        hermes=_steering(planned, rows, hermes=True),
        virtual_ns=known(outcome.virtual_ns),
        wall_s=outcome.wall_s,
        packet_hops=known(hops),
        packet_hops_per_s=UNSET if hops is None or outcome.wall_s <= 0 else hops / outcome.wall_s,
        trace_sha256=known(outcome.trace_sha256),
        overloaded=bool(outcome.overload_reasons),
        overload_reasons=outcome.overload_reasons,
        unobserved=outcome.unobserved or UNSET,
    )


def installed_version() -> str | None:
    """The version of the installed package; None where it runs from a folder that is not installed."""
    try:
        return version("tailrace")
    except PackageNotFoundError:
        return None
