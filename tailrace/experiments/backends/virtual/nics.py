# SPDX-License-Identifier: Apache-2.0
"""The hosts of a network in virtual time: their NICs, and what these have learnt and measured."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tailrace.experiments.backends.job import Job
from tailrace.experiments.results.gaps import Gaps
from tailrace.experiments.results.hf2t import Learned
from tailrace.hosts.nic.nic import Nic
from tailrace.native.virtual import Network
from tailrace.topology import GATEWAY_MAC


def attach_nics(network: Network, job: Job) -> list[Nic]:
    """A NIC in every host, with its flows."""
    nics = {}
    table = job.scheme.paths(job.topology)
    for host in job.topology.hosts:
        nic = Nic(
            ip=host.ip,
            mac=host.mac,
            gateway_mac=GATEWAY_MAC,
            config=replace(job.nic, link_rate_bps=host.rate_bps, virtual_payload=True),
            rng=random.Random(f"nic {host.name} {job.seed}"),
            paths=None if table is None else partial(table.of, host.ip),
        )
        network.attach(host.name, nic)
        nics[host.ip] = nic
    for flow in job.flows:
        nics[flow.src].add_flow(flow)
        nics[flow.dst].expect_flow(flow)
    return list(nics.values())


def learned(nics: Iterable[Nic]) -> tuple[Learned, ...]:
    """What each NIC has learnt that stretches gaps."""
    learners = [nic.learner for nic in nics]
    return tuple(Learned(one.t_ns, one.trainings) for one in learners if one is not None)


def gaps_seen(nics: Iterable[Nic], job: Job) -> Gaps | None:
    """The gaps that NICs have measured; None where they do not."""
    if not job.nic.measure_gaps:
        return None
    return Gaps.merged(nic.gaps.bins() for nic in nics if nic.gaps is not None)
