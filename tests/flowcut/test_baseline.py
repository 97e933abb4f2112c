# SPDX-License-Identifier: Apache-2.0
"""Idle round trips: what the topology says (`baseline=topology`) is what switches observe where nothing waits."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from tailrace.controller.reconcile import install_all
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.p4rt.programs import load
from tailrace.schemes.flowcut.declaration import ResolvedFlowcut
from tailrace.schemes.intent import intent
from tailrace.sim.network import Network
from tailrace.sim.nics import attach_nics
from tailrace.topology.timing import ACK_BYTES, least_delays_ns, sending_ns

REGISTER = "rtt_min_ticks"
NEAR = 0.02
"""A stamp is a few bytes, and an ACK is not exactly ACK_BYTES long."""


def _cells(network: Network, switch: str) -> dict[int, int]:
    """The register's cells that are not 0."""
    program = load("flowcut")
    number = next(
        register.preamble.id for register in program.p4info.registers if register.preamble.alias == REGISTER
    )
    request = p4r.ReadRequest(device_id=network.p4rt(switch).device_id)
    request.entities.add().register_entry.register_id = number
    entries = [e.register_entry for answer in network.p4rt(switch).read(request) for e in answer.entities]
    values = {entry.index.index: int.from_bytes(entry.data.bitstring, "big") for entry in entries}
    return {index: value for index, value in values.items() if value}


@pytest.mark.parametrize("variant", ["full", "ingress"])
@pytest.mark.parametrize(
    "topology",
    [
        "leaf-spine:leaves=3,spines=2,hosts=2,rate=10Gbps,delay=2us",
        "fat-tree:k=4,rate=25Gbps,delay=1us",
        "fat-tree:k=4,rate=100Gbps,delay=200ns,latency=300ns",
    ],
)
def test_what_switches_observe(topology: str, variant: str) -> None:
    words = {
        "target": "virtual",
        "scheme": f"flowcut:variant={variant},baseline=topology",
        "topology": topology,
        "workload": "permutation:size=1KiB,peers=remote",
        "seed": 1,
    }
    job = plan(make(words), "virtual").job
    assert isinstance(job.scheme, ResolvedFlowcut)
    with Network(job.topology, seed=job.seed) as network:
        install_all(network.p4rt, intent(job.topology, job.scheme, job.switches))
        attach_nics(network, job)
        network.run()
        observed: dict[int, int] = {}
        for switch in network.switches:
            for links, ns in _cells(network, switch.name).items():
                observed[links] = min(ns, observed.get(links, ns))
    least: dict[int, int] = {}
    for by_links in least_delays_ns(job.topology).values():
        for links, ns in by_links.items():
            least[links] = min(ns, least.get(links, ns))
    rate_bps = min(link.rate_bps for link in job.topology.links)
    assert observed
    for links, ns in observed.items():
        known = 2 * least[links] + links * sending_ns(ACK_BYTES, rate_bps)
        assert ns == pytest.approx(known, rel=NEAR)
