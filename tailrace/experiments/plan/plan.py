# SPDX-License-Identifier: Apache-2.0
"""Turns one experiment into a job for a backend; every default is resolved here, once."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from tailrace.codec.sizes import wire_bytes
from tailrace.experiments.plan import budget, defaults
from tailrace.experiments.plan.experiment import Experiment, of_settings
from tailrace.experiments.plan.nic import (
    ack_ratio,
    nic_config,
    room_bytes,
    transport_of,
    waiting_bytes,
    window_bytes,
)
from tailrace.experiments.plan.pause import channels_of, check_emulated, given_pfc, pfc_of
from tailrace.experiments.plan.pfc import REACTION_NS, Pfc
from tailrace.experiments.plan.size_estimate import check_network, check_packets, check_queue
from tailrace.experiments.workloads.classes import BACKGROUND
from tailrace.experiments.workloads.workload import rng_of
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.frames.sources import FrameSource
from tailrace.hosts.options.transport import Transport
from tailrace.p4rt.target import target as switch_target
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.program import ProgramConfig
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.sim.job import Job, RealControllerConfig
from tailrace.sim.link_faults import LinkFault, LinkSlow
from tailrace.spec import SpecError
from tailrace.spec.plugins import blamed
from tailrace.spec.scale import scaled, scaled_ns
from tailrace.topology import Topology
from tailrace.topology.pfc import Thresholds


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that is ready to start: the job, and the classes of flows by flow id."""

    experiment: Experiment
    target: str
    job: Job
    classes: Mapping[int, str]

    @property
    def topology(self) -> Topology:
        """The network at its time scale, the factor by which the run is slower than specified."""
        return self.job.topology


def on_target(experiment: Experiment, target: str) -> Experiment:
    """The experiment with the target's default workload if it gives none.

    Raises:
        SpecError: the default workload cannot have the number of flows that is given.
    """
    if experiment.parsed.workload is not None:
        return experiment
    return of_settings({"workload": defaults.workload(target)}, experiment)


@blamed("plan")  # adds a plug-in's file and line to an error that it causes
def plan(experiment: Experiment, target: str) -> Plan:
    """Resolves an experiment into a job.

    Args:
        experiment: its specs, at full speed.
        target: bmv2, native or virtual.

    Raises:
        SpecError: specs that contradict each other.
    """
    experiment = on_target(experiment, target)
    parsed, full_speed = experiment.parsed, experiment.parsed.topology
    check_network(full_speed)
    scale = experiment.time_scale or budget.time_scale(full_speed, target, experiment.mtu_bytes)
    topology = scaled(full_speed, scale)
    flows, classes, sources = _traffic(experiment, scale)
    faults = _faults(experiment, topology, scale)
    given = scaled(parsed.scheme, scale)
    transport = transport_of(parsed.transport, given, topology)
    pfc = given_pfc(parsed.pfc, given, transport, topology, target)
    context = _context(experiment, target, topology, given, flows, faults, transport, pfc)
    scheme = resolve(given, topology, context)
    check_queue(scheme, flows, experiment.mtu_bytes)
    thresholds = _thresholds(experiment, target, topology, scheme, pfc, scale)
    if given.frame_bytes_on(topology, context) is None:
        # only the program `spritz`, whose frame size is known here, supports the steering of single flows
        flows = [structs.replace(flow, steering="") if flow.steering else flow for flow in flows]
    nic = nic_config(
        topology,
        scheme,
        context,
        transport,
        reorder=experiment.reorder,
        scale=scale,
        switches=switch_target(target),
    )
    job = Job(
        topology=topology,
        scheme=scheme,
        target=target,
        seed=experiment.seed,
        flows=tuple(flows),
        nic=replace(nic, measure_gaps=True) if experiment.gaps else nic,
        faults=faults,
        time_scale=scale,
        pfc=thresholds,
        sample_ns=None if experiment.sample_ns is None else scaled_ns("sample", experiment.sample_ns, scale),
        watch=experiment.follow,
        record=experiment.record,
        background=frozenset(number for number, name in classes.items() if name == BACKGROUND),
        real_controller=_real_controller(experiment, target, scale),
        sources=sources,
    )
    return Plan(experiment, target, job, classes)


def _real_controller(experiment: Experiment, target: str, scale: float) -> RealControllerConfig | None:
    """The settings of the real controller at the time scale; None for the ideal one."""
    wanted = experiment.parsed.controller
    if wanted is None:
        return None
    if experiment.parsed.scheme.name == ProgramConfig.name:
        raise SpecError("controller: with the scheme program no controller changes the entries")
    if target != "virtual":
        raise SpecError(f"controller: in real time it is always real; the target is {target}")
    return scaled(wanted, scale)


def _traffic(
    experiment: Experiment, scale: float
) -> tuple[list[FlowSpec], Mapping[int, str], tuple[FrameSource, ...]]:
    """Flows at the time scale, their classes by flow id, and other frames."""
    workload = experiment.parsed.workload
    assert workload is not None, "on_target has set it"
    # one random number generator for each purpose, so that another fault does not change the flows
    traffic = workload.traffic(experiment.parsed.topology, rng_of(experiment.seed))
    try:
        check_dependencies(traffic.flows)
    except ConfigError as error:
        raise SpecError(f"workload: {error}") from error
    check_packets(traffic.flows, experiment.mtu_bytes)
    sources = tuple(scaled(source, scale) for source in traffic.sources)
    return [scaled(flow, scale) for flow in traffic.flows], traffic.classes, sources


def _faults(experiment: Experiment, topology: Topology, scale: float) -> tuple[LinkFault, ...]:
    return tuple(
        scaled(link_fault, scale)
        for number, fault in enumerate(experiment.parsed.faults)
        for link_fault in fault.resolve(topology, random.Random(f"fault {number} {experiment.seed}"))
    )


def _context(
    experiment: Experiment,
    target: str,
    topology: Topology,
    given: SchemeConfig,
    flows: Sequence[FlowSpec],
    faults: Sequence[LinkFault],
    transport: Transport,
    pfc: Pfc | None,
) -> SchemeContext:
    """The experiment's settings from which the scheme derives its defaults."""
    mtu, parsed = experiment.mtu_bytes, experiment.parsed
    frame = given.frame_bytes_on(topology, SchemeContext(mtu_bytes=mtu))
    window = window_bytes(
        topology, target, parsed.window, mtu=mtu, frame_bytes=frame, transport=transport.name
    )
    # PFC keeps a queue within its bounds without losses
    room = room_bytes(topology, target, transport, mtu) if pfc is None else None
    if room is None:
        room = waiting_bytes(flows, window=window, mtu=mtu)
    return SchemeContext(
        mtu_bytes=mtu,
        window_bytes=window,
        room_bytes=room,
        ack_ratio=ack_ratio(mtu),
        slowest=min((fault.factor for fault in faults if isinstance(fault, LinkSlow)), default=1.0),
        transport=transport.name,
        fastest_bps=parsed.topology.fastest_bps,
        pause_bytes=None if pfc is None else pfc.xoff_bytes,
        marks=any(flow.steering for flow in flows),
        lossless=pfc is not None,
        # the most bytes that any switch can have queued; wire_bytes(mtu, mtu)[0]: the size of a full frame
        held_bytes=None if pfc is None else pfc.of(topology, wire_bytes(mtu, mtu)[0]).held_bytes(topology),
        steady=target != "bmv2",
    )


def _thresholds(
    experiment: Experiment, target: str, topology: Topology, scheme: Resolved, pfc: Pfc | None, scale: float
) -> Thresholds | None:
    """The thresholds of PFC if the experiment uses it or the scheme requires it; else None.

    Raises:
        SpecError: they contradict each other or the scheme, or the target has no PFC.
    """
    wanted = pfc_of(pfc, scheme)
    if wanted is None:
        return None
    if target == "bmv2":
        check_emulated(wanted, scheme)
    frame_bytes = wire_bytes(experiment.mtu_bytes, experiment.mtu_bytes)[0]
    reaction_ns = 0 if target == "virtual" else REACTION_NS
    channels = channels_of(wanted, scheme, topology, target)
    return wanted.of(topology, frame_bytes, reaction_ns, scale, channels)
