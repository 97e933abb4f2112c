# SPDX-License-Identifier: Apache-2.0
"""A job: the complete description of one run. A plan makes the job. A backend runs the job in this process,
or in another process that reads the job from a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.frames.sources import FrameSource
from tailrace.hosts.options.nic import NicConfig
from tailrace.p4rt.target import EmulatedPfc, Target, target
from tailrace.schemes.program import ResolvedProgram
from tailrace.schemes.registry import with_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.sim.link_faults import LinkDown, LinkFault, LinkSlow
from tailrace.spec import SpecError, keys
from tailrace.spec.files import MOST_BYTES
from tailrace.spec.schema import read_json
from tailrace.topology import Host, Topology
from tailrace.topology.pfc import Thresholds

RECORDS = ("events", "packets")
"""What the record of a run in virtual time has: losses, PFC frames, drains, changes of path; or every frame,
too."""

REAL_TIME = ("bmv2", "native")
"""Targets whose switches and hosts are processes, under Mininet."""


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run with all settings resolved. `time_scale` is the factor by which the run is slower than
    specified; all rates and times here include it.

    pfc: PFC thresholds; None: PFC is off.
    background: ids of flows that the run does not wait for, if the target can end a run before all flows end.
    sample_ns: interval between samples of queues; ignored by targets that cannot sample.
    watch: ids of flows whose paths are recorded; ignored by targets that cannot record paths.
    record: what the record of the run has, one of RECORDS; None: there is no record.
    pcap_dir: folder for captures, one file per link; None: no captures.
    sources: frames that hosts send besides flows.
    real_controller: settings of the real controller (that of real-time runs) in virtual time; None: the ideal
        controller.
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
    record: Annotated[str, Meta(pattern="^(events|packets)$", description="events or packets")] | None = None
    background: frozenset[int] = frozenset()
    real_controller: RealControllerConfig | None = None
    sources: tuple[FrameSource, ...] = ()

    @property
    def switches(self) -> Target:
        """Properties of the switches. BMv2's traffic manager has no PFC: there the P4 program emulates it."""
        pfc = self.pfc if self.target == "bmv2" else None
        # BMv2's ticks cannot be changed
        scheme = self.scheme if self.target != "bmv2" else None
        return target(
            self.target,
            scheme.tick_ns if isinstance(scheme, ResolvedProgram) else None,
            pfc=None if pfc is None else EmulatedPfc(pfc.xoff_bytes, pfc.xon_bytes, pfc.watchdog.spec()),
            channels=0 if self.pfc is None else self.pfc.channels,
        )

    def macs(self, host: Host) -> dict[str, str]:
        """The destination MAC addresses of a host's frames, by the IPv4 address of its peers in flows; others
        are sent to GATEWAY_MAC. A user's program may forward by MAC addresses.
        """
        if not self.scheme.is_foreign:
            return {}
        pairs = ((flow.src, flow.dst) for flow in self.flows)
        peers = dict.fromkeys(b for pair in pairs for a, b in (pair, pair[::-1]) if a == host.ip)
        names = self.topology.host_by_ip
        return {peer: self.topology.next_hop_mac(host.name, names(peer).name) for peer in peers}


def write_job(job: Job, path: Path) -> None:
    """Writes a job for another process."""
    path.write_bytes(msgspec.json.encode(job, enc_hook=str))


def read_job(path: Path) -> Job:
    """Reads a job from a file.

    Raises:
        FileError: the file cannot be read, or does not contain a valid job.
        SpecError: this process does not know the scheme.
    """
    return read_json(path, Job, MOST_BYTES, with_scheme)


def check_real_time(job: Job) -> None:
    """Checks that a target in real time can run a job.

    Raises:
        SpecError: the target cannot run the job.
    """
    if job.target not in REAL_TIME:
        raise SpecError(f"target {job.target}: expected one of {', '.join(REAL_TIME)}")
    hosts = {host.ip for host in job.topology.hosts}
    has_paths = job.scheme.paths(job.topology) is not None
    for flow in job.flows:
        for ip in (flow.src, flow.dst):
            if ip not in hosts:
                raise SpecError(f"flow {flow.id}: no host has the address {ip}")
        if (flow.steering or job.nic.steering is not None) and not has_paths:
            raise SpecError(f"flow {flow.id}: there is no path list from {flow.src} to {flow.dst}")
    if job.pfc is not None and job.pfc.buffer_bytes is not None and job.target != "native":
        raise SpecError(f"pfc: buffer: {job.target} has no shared buffer; use the target native")
    links = {frozenset((link.a, link.b)) for link in job.topology.links}
    for fault in job.faults:
        name = f"fault {fault.__struct_config__.tag}"
        if not isinstance(fault, LinkSlow | LinkDown):
            raise SpecError(f"{name}: not supported by switches in Mininet; use --target virtual")
        if frozenset((fault.a, fault.b)) not in links:
            raise SpecError(f"{name}: the topology has no link {fault.a}-{fault.b}")


_LEAST_NS = 100
"""The least latency or interval accepted; far below what any controller could keep up with."""
_LATENCY = keys.time(
    "latency", "mean one-way delay of a message", least=_LEAST_NS, absent="a tenth of the interval"
)
_INTERVAL = keys.time(
    "interval", "time between probes of a link", least=_LEAST_NS, absent="from the base RTT"
)


@dataclass(frozen=True, slots=True)
class RealControllerConfig:
    """The settings of the real controller; None: the default that the key describes (`absent`)."""

    latency_ns: Annotated[int | None, _LATENCY] = None
    interval_ns: Annotated[int | None, _INTERVAL] = None
