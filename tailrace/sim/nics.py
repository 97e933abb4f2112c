# SPDX-License-Identifier: Apache-2.0
"""The NICs of a network in virtual time, and the values that they have learnt and measured. Several
processes, the *ranks*, can run one network; each has the NICs of its part. `Network.all_gather` returns the
values of all ranks, `Network.gathered` merges their mappings.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tailrace.codec.templates import ip_number
from tailrace.hosts.flows.flow import FlowRecord
from tailrace.hosts.flows.observation import merge
from tailrace.hosts.frames.host import FrameHost, HostFrames, frame_host
from tailrace.hosts.gaps.histogram import merged_bins
from tailrace.hosts.measured import Gaps, Learned
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.nic.recording import RecordingNic
from tailrace.sim.job import Job
from tailrace.sim.network import Network
from tailrace.sim.network.record import FlowKey
from tailrace.topology import GATEWAY_MAC


def attach_nics(network: Network, job: Job) -> list[Nic]:
    """Attaches a NIC with its flows to every host of this rank; returns the NICs.

    Raises:
        FileError: a capture that a host replays cannot be read.
    """
    nics = {}
    # the paths by source and destination that NICs choose among; None: the switches choose
    table = job.scheme.paths(job.topology)
    for host in network.hosts:
        make = Nic if job.record is None else RecordingNic
        nic = make(
            ip=host.ip,
            mac=host.mac,
            gateway_mac=GATEWAY_MAC,
            config=replace(job.nic, link_rate_bps=host.rate_bps, virtual_payload=True),
            rng=random.Random(f"nic {host.name} {job.seed}"),
            paths=None if table is None else partial(table.of, host.ip),
            macs=job.macs(host),
        )
        network.attach(host.name, frame_host(nic, job.sources, len(job.topology.hosts)))
        nics[host.ip] = nic
    for flow in job.flows:
        if flow.src in nics:
            nics[flow.src].add_flow(flow)
        if flow.dst in nics:
            nics[flow.dst].expect_flow(flow)
    return list(nics.values())


def flow_ids(job: Job) -> dict[FlowKey, int]:
    """The id of each flow, by both directions of its packets."""
    ids = {}
    for flow in job.flows:
        src, dst = ip_number(flow.src), ip_number(flow.dst)
        ids[src, dst, flow.qpn] = ids[dst, src, flow.qpn] = flow.id
    return ids


def recording(nics: Sequence[Nic]) -> list[RecordingNic]:
    """The NICs that record events of their flows."""
    return [nic for nic in nics if isinstance(nic, RecordingNic)]


def frames_seen(network: Network, job: Job) -> dict[str, HostFrames]:
    """What each host sent and received besides flows; empty if no host sends such frames."""
    hosts = {host.id: (host.name, network.nic(host.name)) for host in network.hosts if job.sources}
    local = {
        number: (name, nic.seen()) for number, (name, nic) in hosts.items() if isinstance(nic, FrameHost)
    }
    return dict(network.gathered(local).values())


def records(network: Network, nics: Sequence[Nic]) -> tuple[FlowRecord, ...]:
    """The observations of sender and receiver of each flow, merged."""
    local = [observation for nic in nics for observation in nic.records()]
    return tuple(merge(itertools.chain(*network.all_gather(local))))


def learned(network: Network, nics: Sequence[Nic]) -> tuple[Learned, ...]:
    """What each NIC has learnt about gaps between packets (HF2T, hosts/gaps/hf2t.py), sorted by host id."""
    learners = {host.id: nic.learner for host, nic in zip(network.hosts, nics, strict=True)}
    local = {
        host: Learned(learner.t_ns, learner.trainings)
        for host, learner in learners.items()
        if learner is not None
    }
    return tuple(network.gathered(local).values())


def gaps_seen(network: Network, nics: Sequence[Nic], job: Job) -> Gaps | None:
    """The gaps between packets that NICs have measured; None if the job does not request this."""
    if not job.nic.measure_gaps:
        return None
    bins = list(merged_bins(nic.gaps.bins() for nic in nics if nic.gaps is not None))
    return Gaps.merged(network.all_gather(bins))
