# SPDX-License-Identifier: Apache-2.0
"""Networks with real NICs under a scheme of the controller's."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import GATEWAY_MAC, parse_topology
from tests.flowcut.fabric import build


def fabric(topology: str, scheme: str, seed: int = 0) -> tuple[Network, dict[str, Nic]]:
    """The network, ready for traffic, and its NICs by host."""
    network = build(parse_topology(topology), parse_scheme(scheme), seed)
    nics = {}
    for host in network.topology.hosts:
        config = NicConfig(
            transport="gbn",
            window_bytes=20_000,
            virtual_payload=True,
            rto_ns=200_000,
            link_rate_bps=host.rate_bps,
        )
        nic = Nic(
            ip=host.ip, mac=host.mac, gateway_mac=GATEWAY_MAC, config=config, rng=random.Random(host.id)
        )
        nics[host.name] = nic
        network.attach(host.name, nic)
    return network, nics


def add_flows(
    network: Network, nics: dict[str, Nic], flows: Sequence[tuple[str, str, int]]
) -> list[FlowSpec]:
    """Flows of so many bytes from host to host, all from time 0."""
    specs = []
    for number, (source, target, nbytes) in enumerate(flows):
        a, b = network.topology.host(source), network.topology.host(target)
        spec = FlowSpec(number, a.ip, b.ip, nbytes, 0, 100 + number, 5000 + number)
        nics[source].add_flow(spec)
        nics[target].expect_flow(spec)
        specs.append(spec)
    return specs
