# SPDX-License-Identifier: Apache-2.0
"""A job of the driver, as it stands in JSON, and the NICs it asks for."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import msgspec

from tailrace.hosts.errors import ConfigError, JobError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.nic import DctcpConfig, FlowcutNicConfig, MpRdmaConfig, NicConfig, SteeringConfig
from tailrace.hosts.options.tcp import TcpConfig

_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


class HostJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One host.

    Args:
        name: for results and messages.
        interface: network interface of its NIC.
        ip, mac, gateway_mac: its addresses, and where all its frames go.
        rate_bps: rate that the NIC keeps.
        delay_ns: how long its frames take to the other end of the link, beside what the kernel takes.
        netns: where the interface is: a path, a name below /var/run/netns, or a pid; None: here.
        paths: the endpoint table (Spritz §III-C), by address of the destination: of all to which its steered
            flows go.
    """

    name: str
    interface: str
    ip: str
    mac: str
    gateway_mac: str
    rate_bps: int
    delay_ns: int = 0
    netns: str | int | None = None
    paths: dict[str, PathList] = {}


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to run. Times of flows count from the start.

    Args:
        hosts: at least one; flows between hosts of which one at least is among them.
        nic: settings of all NICs; link_rate_bps is taken from the host.
        seed: of all random choices, together with the host's name.
        result: where the result is written; None: nowhere.
        timeout_ns: ends the run although flows are not complete; None: never.
        wait_for_start: begins with a line `start` on standard input, not at once.
        progress_ns: time between two progress lines.
        kernel_tcp: flows are TCP connections of the kernel with this congestion control, and nic only says
            how long a segment is, and whether gaps are measured; None: NICs send them.
        overload_lag_ns: a run in which 1 % of the frames leave later than that is overloaded; None: the time
            of 5 full frames at the slowest host, but at least 2 ms.
    """

    hosts: tuple[HostJob, ...]
    flows: tuple[FlowSpec, ...]
    nic: NicConfig
    seed: int = 0
    result: str | None = None
    timeout_ns: int | None = None
    wait_for_start: bool = True
    progress_ns: int = 200_000_000
    overload_lag_ns: int | None = None
    kernel_tcp: str | None = None


def read_job(path: Path) -> Job:
    """Reads and checks a job.

    Raises:
        JobError: the file cannot be read, or is no job; one line that names the place.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}") from error
    try:
        _refuse_unknown(msgspec.json.decode(text))
        job = msgspec.json.decode(text, type=Job)
        _check(job)
    except (msgspec.DecodeError, JobError) as error:
        raise JobError(f"{path}: {error}") from error
    return job


def _refuse_unknown(raw: object) -> None:
    """Keys of the dataclasses, which msgspec would pass over."""
    if not isinstance(raw, dict):
        return
    nic, flows, hosts = raw.get("nic"), raw.get("flows"), raw.get("hosts")
    parts: list[tuple[str, object, type]] = [("nic", nic, NicConfig)]
    if isinstance(nic, dict):
        parts.append(("nic.flowcut_nic", nic.get("flowcut_nic"), FlowcutNicConfig))
        parts.append(("nic.mp_rdma", nic.get("mp_rdma"), MpRdmaConfig))
        parts.append(("nic.dctcp", nic.get("dctcp"), DctcpConfig))
        parts.append(("nic.steering", nic.get("steering"), SteeringConfig))
        parts.append(("nic.dcqcn", nic.get("dcqcn"), DcqcnConfig))
        parts.append(("nic.hermes", nic.get("hermes"), HermesConfig))
        parts.append(("nic.tcp", nic.get("tcp"), TcpConfig))
        parts.append(("nic.hf2t", nic.get("hf2t"), Hf2tConfig))
    if isinstance(flows, list):
        parts += [("flows", flow, FlowSpec) for flow in flows]
    if isinstance(hosts, list):
        tables = [host.get("paths") for host in hosts if isinstance(host, dict)]
        lists = [one for table in tables if isinstance(table, dict) for one in table.values()]
        parts += [("tailrace.hosts.flows.paths", one, PathList) for one in lists]
    for where, part, kind in parts:
        if isinstance(part, dict):
            known = {one.name for one in fields(kind)}
            for key in sorted(part.keys() - known):
                raise JobError(f"{where}: unknown key {key!r}; expected {', '.join(sorted(known))}")


def _check(job: Job) -> None:
    if not job.hosts:
        raise JobError("hosts: there is none")
    if job.nic.virtual_payload:
        raise JobError("nic: virtual_payload is for virtual time only")
    for host in job.hosts:
        if host.rate_bps <= 0:
            raise JobError(f"host {host.name}: rate_bps is {host.rate_bps}, expected more than 0")
        if host.delay_ns < 0:
            raise JobError(f"host {host.name}: delay_ns is {host.delay_ns}, expected 0 or more")
        if not _IPV4.fullmatch(host.ip) or max(map(int, host.ip.split("."))) > 0xFF:
            raise JobError(f"host {host.name}: {host.ip!r} is no IPv4 address")
        for mac in (host.mac, host.gateway_mac):
            if not _MAC.fullmatch(mac):
                raise JobError(f"host {host.name}: {mac!r} is no MAC address")
    for what, values in (
        ("name", [host.name for host in job.hosts]),
        ("ip", [host.ip for host in job.hosts]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise JobError(f"hosts: {what} {twice[0]} is given twice")


def _check_paths(job: Job) -> None:
    """Whether each host knows paths for all its steered flows: a NIC asks only when a flow starts."""
    hosts = {host.ip: host for host in job.hosts}
    for flow in job.flows:
        host = hosts.get(flow.src)
        steered = flow.steering or job.nic.steering is not None
        if steered and host is not None and flow.dst not in host.paths:
            raise ConfigError(f"flow {flow.id}: host {host.name} has no path list to {flow.dst}")


def make_nics(job: Job) -> list[Nic]:
    """The NIC of each host, with its flows.

    Raises:
        ConfigError: a flow that no host has, that cannot be told from another one, that can never start, or
            that has no paths.
    """
    here = {host.ip for host in job.hosts}
    # what a flow waits for at a host that is elsewhere, this job need not know
    check_dependencies(flow if flow.src in here else replace(flow, after=()) for flow in job.flows)
    _check_paths(job)
    nics: dict[str, Nic] = {}
    for host in job.hosts:
        nics[host.ip] = Nic(
            ip=host.ip,
            mac=host.mac,
            gateway_mac=host.gateway_mac,
            config=replace(job.nic, link_rate_bps=host.rate_bps),
            rng=random.Random(f"{job.seed}/{host.name}"),
            paths=host.paths.__getitem__,
        )
    for flow in job.flows:
        if flow.src not in nics and flow.dst not in nics:
            raise ConfigError(f"flow {flow.id}: neither {flow.src} nor {flow.dst} is a host of this job")
        if flow.src in nics:
            nics[flow.src].add_flow(flow)
        if flow.dst in nics:
            nics[flow.dst].expect_flow(flow)
    return list(nics.values())
