# SPDX-License-Identifier: Apache-2.0
"""The job of a run: a JSON object, checked in whole before anything is started.

topology          what topology.model.Topology holds, at its time scale
scheme            what a scheme is in it (schemes.base.Resolved)
target            native or bmv2
seed              for the hosts' NICs
time_scale        everything takes that many times as long as its words say
flows, nic        what hosts.flows.flow.FlowSpec and hosts.options.nic.NicConfig hold
paths             {source: {destination: what hosts.flows.paths.PathList holds}}, both by their addresses: the
                  endpoint tables of steered flows
faults            a list of {"kind": "link-slow", "a", "b", "factor", "at_ns", "until_ns"}
                  and {"kind": "link-down", "a", "b", "at_ns", "until_ns"}, from the start of the traffic
kernel_tcp        flows are TCP connections of the hosts' kernel with this congestion control, or null; of
                  `nic` only mtu_bytes and measure_gaps count then
pfc               priority flow control of the NICs' data class, or null: {"xoff_bytes", "xon_bytes",
                  "headroom_bytes", "buffer_bytes" (null: no limit), "alpha" ("1/8", null: fixed thresholds),
                  "port_bytes", "watchdog" (of pauses between switches, as words.watchdog has it)}; on bmv2
                  the program stands in for it, without headroom and buffer
out               folder of RESULT.json and logs/
pcap_dir          folder of captures, one file a link, or null
cli               show Mininet's prompt instead of running the flows at once
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from fabric_report import InputError
from msgspec import Meta

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import NicConfig
from tailrace.topology import Topology
from tailrace.words.errors import FileError
from tailrace.words.files import MOST_BYTES
from tailrace.words.schema import read_json
from tailrace.words.watchdog import Watchdog, parse_watchdog


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that happens to the link a-b from `at_ns` on; until_ns None: for the rest of the run."""

    kind: Literal["link-slow", "link-down", "drop", "ack-loss"]
    a: str = ""
    b: str = ""
    factor: float = 1.0
    rate: float = 0.0
    at_ns: int = 0
    until_ns: int | None = None


class Pfc(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds of every port of every switch, and the memory of a switch."""

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int
    buffer_bytes: int | None = None
    alpha: str | None = None
    port_bytes: int = 0
    watchdog: str = Watchdog().words()

    def __post_init__(self) -> None:
        parse_watchdog(self.watchdog)


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to run."""

    topology: Topology
    scheme: dict[str, Any]
    target: Literal["native", "bmv2"]
    out: Path
    seed: int = 0
    time_scale: Annotated[float, Meta(gt=0, description="a number above 0")] = 1.0
    flows: tuple[FlowSpec, ...] = ()
    nic: NicConfig = NicConfig()
    paths: dict[str, dict[str, PathList]] = {}
    faults: tuple[Fault, ...] = ()
    kernel_tcp: str | None = None
    pfc: Pfc | None = None
    pcap_dir: Path | None = None
    cli: bool = False


def read_job(path: Path) -> Job:
    """The job in a file.

    Raises:
        InputError: the file cannot be read, or is no such job.
    """
    try:
        return read_json(path, Job, MOST_BYTES)
    except FileError as error:
        raise InputError(str(error)) from error


def check_job(job: Job) -> None:
    """Whether flows and faults fit the topology and the target.

    Raises:
        InputError: they do not.
    """
    topology = job.topology
    hosts = {host.ip for host in topology.hosts}
    for flow in job.flows:
        for ip in (flow.src, flow.dst):
            if ip not in hosts:
                raise InputError(f"flow {flow.id}: no host has the address {ip}")
    _check_paths(job, hosts)
    if job.kernel_tcp is not None and job.pfc is not None:
        raise InputError("pfc: the kernel's TCP does not heed its pauses")
    if job.pfc is not None and job.pfc.buffer_bytes is not None and job.target != "native":
        raise InputError(f"pfc: buffer: {job.target} has no memory that ports share; use the target native")
    links = {frozenset((link.a, link.b)) for link in topology.links}
    for fault in job.faults:
        if fault.kind in ("drop", "ack-loss"):
            raise InputError(f"fault {fault.kind}: switches in Mininet cannot do it; use the target virtual")
        if frozenset((fault.a, fault.b)) not in links:
            raise InputError(f"fault {fault.kind}: the topology has no link {fault.a}-{fault.b}")
        if fault.kind == "link-slow":
            _check_slow(fault, job.target)


def _check_paths(job: Job, hosts: set[str]) -> None:
    for src, table in job.paths.items():
        for ip in (src, *table):
            if ip not in hosts:
                raise InputError(f"paths: no host has the address {ip}")
    for flow in job.flows:
        steered = flow.steering or job.nic.steering is not None
        if steered and flow.dst not in job.paths.get(flow.src, {}):
            raise InputError(f"flow {flow.id}: there is no path list from {flow.src} to {flow.dst}")


def _check_slow(fault: Fault, target: str) -> None:
    if not 0 < fault.factor <= 1:
        raise InputError(f"fault link-slow: factor is {fault.factor}, expected more than 0 and at most 1")
    if target == "native" and (fault.at_ns, fault.until_ns) != (0, None):
        raise InputError(
            "fault link-slow: the native switch takes rates only at its start, so no at or until"
        )
