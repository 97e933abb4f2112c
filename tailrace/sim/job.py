# SPDX-License-Identifier: Apache-2.0
"""What is to be run: the one thing that goes from a plan to whatever carries it out, in this process or as a
file to another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.options.nic import NicConfig
from tailrace.p4rt.target import EmulatedPfc, Target, target
from tailrace.schemes.registry import with_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.sim.link_faults import LinkDown, LinkFault, LinkSlow
from tailrace.spec import SpecError, keys
from tailrace.spec.files import MOST_BYTES
from tailrace.spec.schema import read_json
from tailrace.topology import Topology
from tailrace.topology.pfc import Thresholds

REAL_TIME = ("bmv2", "native")
"""Targets whose switches and hosts are programs, under Mininet."""


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run, ready to go.

    All is at its time scale, and nothing is left open. `pfc` None is without.
    `background` names flows that a run does not wait for, where its target can end before them.
    `sample_ns` is how often queues are looked at, and `watch` names flows whose paths are recorded; what
    cannot do that leaves it.
    `pcap_dir`: folder of captures, one file a link; None: none.
    `real_controller`: the settings of the real controller in virtual time; None: the ideal controller.
    """

    topology: Topology
    scheme: Resolved
    target: Annotated[str, Meta(pattern="^(bmv2|native|virtual)$", description="bmv2, native or virtual")]
    seed: int = 0
    flows: tuple[FlowSpec, ...] = ()
    nic: NicConfig = msgspec.field(default_factory=NicConfig)
    faults: tuple[LinkFault, ...] = ()
    time_scale: Annotated[float, Meta(gt=0, description="a number above 0")] = 1.0
    pcap_dir: Path | None = None
    pfc: Thresholds | None = None
    sample_ns: int | None = None
    watch: tuple[int, ...] = ()
    background: frozenset[int] = frozenset()
    real_controller: RealControllerConfig | None = None

    @property
    def switches(self) -> Target:
        """What its switches are like; BMv2's traffic manager has no PFC, so the program does it there."""
        pfc = self.pfc if self.target == "bmv2" else None
        return target(
            self.target,
            pfc=None if pfc is None else EmulatedPfc(pfc.xoff_bytes, pfc.xon_bytes, pfc.watchdog.spec()),
            channels=0 if self.pfc is None else self.pfc.channels,
        )


def write_job(job: Job, path: Path) -> None:
    """Writes a job for another process."""
    path.write_bytes(msgspec.json.encode(job, enc_hook=str))


def read_job(path: Path) -> Job:
    """The job in a file.

    Raises:
        FileError: the file cannot be read, or is no such job.
        SpecError: the scheme is not known here.
    """
    return read_json(path, Job, MOST_BYTES, with_scheme)


def check_real_time(job: Job) -> None:
    """Whether switches and hosts that are programs can do what a job asks for.

    Raises:
        SpecError: they cannot.
    """
    if job.target not in REAL_TIME:
        raise SpecError(f"target {job.target}: expected one of {', '.join(REAL_TIME)}")
    hosts = {host.ip for host in job.topology.hosts}
    steers = job.scheme.paths(job.topology) is not None
    for flow in job.flows:
        for ip in (flow.src, flow.dst):
            if ip not in hosts:
                raise SpecError(f"flow {flow.id}: no host has the address {ip}")
        if (flow.steering or job.nic.steering is not None) and not steers:
            raise SpecError(f"flow {flow.id}: there is no path list from {flow.src} to {flow.dst}")
    if job.pfc is not None and job.pfc.buffer_bytes is not None and job.target != "native":
        raise SpecError(f"pfc: buffer: {job.target} has no memory that ports share; use the target native")
    links = {frozenset((link.a, link.b)) for link in job.topology.links}
    for fault in job.faults:
        name = f"fault {fault.__struct_config__.tag}"
        if not isinstance(fault, LinkSlow | LinkDown):
            raise SpecError(f"{name}: switches in Mininet cannot do it; use --target virtual")
        if frozenset((fault.a, fault.b)) not in links:
            raise SpecError(f"{name}: the topology has no link {fault.a}-{fault.b}")
        if isinstance(fault, LinkSlow) and job.target == "native" and not fault.always:
            raise SpecError(f"{name}: the native switch takes rates only at its start, so no at or until")


_LEAST_NS = 100
"""Of a latency or an interval; far below anything that a controller could keep up with."""
_LATENCY = keys.time(
    "latency", "of a message, one way, in the mean", least=_LEAST_NS, absent="a tenth of the interval"
)
_INTERVAL = keys.time("interval", "between the probes of a link", least=_LEAST_NS, absent="by the base RTT")


@dataclass(frozen=True, slots=True)
class RealControllerConfig:
    """The settings of the real controller; None: the default."""

    latency_ns: Annotated[int | None, _LATENCY] = None
    interval_ns: Annotated[int | None, _INTERVAL] = None
