# SPDX-License-Identifier: Apache-2.0
"""A job of the real-time driver: hosts, flows and settings, read from JSON; and the NICs that it needs."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, structs

from tailrace.hosts.errors import ConfigError, JobError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.frames.sources import FrameSource
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tailrace.spec.errors import FileError
from tailrace.spec.files import MOST_BYTES
from tailrace.spec.schema import read_json

_BYTE = r"(25[0-5]|2[0-4]\d|1?\d?\d)"
_Ipv4 = Annotated[str, Meta(pattern=rf"^{_BYTE}(\.{_BYTE}){{3}}\Z", description="an IPv4 address")]
_Mac = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}\Z", description="a MAC address")]


class HostJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One host.

    name: used in results and messages.
    interface: network interface of its NIC.
    ip, mac, gateway_mac: its addresses, and the destination MAC address of its frames.
    macs: other destination MAC addresses, by the IPv4 address of the peer.
    rate_bps: sending rate of the NIC.
    delay_ns: propagation delay of its frames to the other end of the link, in addition to the kernel's delay.
    netns: network namespace of the interface: a path, a name in /var/run/netns, or a pid; None: that of the
        driver.
    paths: the endpoint table (Spritz §III-C): paths by destination address, for all destinations of the
        host's steered flows, that is, flows whose paths the NIC chooses.
    """

    name: str
    interface: str
    ip: _Ipv4
    mac: _Mac
    gateway_mac: _Mac
    rate_bps: Annotated[int, Meta(gt=0, description="bits a second, more than 0")]
    delay_ns: Annotated[int, Meta(ge=0, description="ns, 0 or more")] = 0
    netns: str | int | None = None
    paths: dict[str, PathList] = {}
    macs: dict[str, _Mac] = {}


class HostsJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hosts and flows of one run. Times of flows count from the start.

    hosts: at least one host. flows: each has its source, its destination or both among the hosts.
    nic: settings of all NICs; link_rate_bps is taken from the host.
    seed: seed of all random choices, together with the host's name.
    result: file to which the result is written; None: none.
    timeout_ns: time after which the run ends even if flows are not complete; None: no limit.
    wait_for_start: wait for a line `start` on standard input before the run.
    progress_ns: time between two progress lines.
    overload_lag_ns: a run counts as overloaded if 1 % of the frames leave more than this after they were due;
        None: the time of 5 full frames at the slowest host, but at least 2 ms.
    sources: frames that hosts send besides flows.
    linger_ns: how long the run waits for frames after all NICs have become idle, since with unreliable
        transports and other frames nobody knows what is still under way.
    """

    hosts: Annotated[tuple[HostJob, ...], Meta(min_length=1, description="at least one host")]
    flows: tuple[FlowSpec, ...]
    nic: NicConfig
    seed: int = 0
    result: str | None = None
    timeout_ns: int | None = None
    wait_for_start: bool = True
    progress_ns: int = 200_000_000
    overload_lag_ns: int | None = None
    sources: tuple[FrameSource, ...] = ()
    linger_ns: Annotated[int, Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.nic.virtual_payload:
            raise ValueError("nic: virtual_payload is for virtual time only")
        for key in ("name", "ip"):
            twice = [value for value, n in Counter(getattr(h, key) for h in self.hosts).items() if n > 1]
            if twice:
                raise ValueError(f"hosts: {key} {twice[0]} is given twice")


def read_job(path: Path) -> HostsJob:
    """Reads and checks a job.

    Raises:
        JobError: the file cannot be read, or is not a valid job; the one-line message contains the position.
    """
    try:
        return read_json(path, HostsJob, MOST_BYTES)
    except FileError as error:
        raise JobError(str(error)) from error


def _check_paths(job: HostsJob) -> None:
    """Refuses a steered flow without a path list; a NIC would report the error only at the flow's start."""
    hosts = {host.ip: host for host in job.hosts}
    for flow in job.flows:
        host = hosts.get(flow.src)
        steered = flow.steering or job.nic.steering is not None
        if steered and host is not None and flow.dst not in host.paths:
            raise ConfigError(f"flow {flow.id}: host {host.name} has no path list to {flow.dst}")


def make_nics(job: HostsJob) -> list[Nic]:
    """The NIC of each host, with its flows.

    Raises:
        ConfigError: neither end of a flow is a host of this job, or a flow has the queue pair of another
            flow, can never start, or has no paths.
    """
    addresses = {host.ip for host in job.hosts}
    # if a flow's source is not in this job, the flows that it waits for need not be in this job either
    alone = {"after": (), "after_ns": (), "after_count": 0}
    check_dependencies(
        flow if flow.src in addresses else structs.replace(flow, **alone) for flow in job.flows
    )
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
            macs=host.macs,
        )
    for flow in job.flows:
        if flow.src not in nics and flow.dst not in nics:
            raise ConfigError(f"flow {flow.id}: neither {flow.src} nor {flow.dst} is a host of this job")
        if flow.src in nics:
            nics[flow.src].add_flow(flow)
        if flow.dst in nics:
            nics[flow.dst].expect_flow(flow)
    return list(nics.values())
