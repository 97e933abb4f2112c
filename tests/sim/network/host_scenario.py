# SPDX-License-Identifier: Apache-2.0
"""Networks of real NICs under all that they know: python -m tests.sim.network.host_scenario prints the results.

Whoever carries the NICs' packets, and however the NICs run, the results are the same.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

from tailrace import hosts
from tailrace.codec import nic as interface
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.topology import GATEWAY_MAC
from tests.sim.network import l3

WORDS = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
LIMIT_NS = 100_000_000

CONFIGS = {
    "gbn": NicConfig(mtu_bytes=1000, window_bytes=20_000, virtual_payload=True),
    "payload": NicConfig(mtu_bytes=333, ack_every=3, virtual_payload=False),
    "sr": NicConfig(transport="sr", virtual_payload=True, flow_rate_bps=3_000_000_000, ecn=True),
    "mp-rdma": NicConfig(transport="mp-rdma", virtual_payload=True),
    "flowcut-nic": NicConfig(transport="gbn", virtual_payload=True, flowcut_nic=FlowcutNicConfig()),
}


@dataclass(frozen=True)
class Result:
    """What came out of a run."""

    trace_sha256: str
    now_ns: int
    records: list[dict[str, object]]
    counters: list[dict[str, int]]


def run(
    config: NicConfig, carry: Callable[[Nic], interface.Nic] = lambda nic: nic, *, loss: float = 0.0
) -> Result:
    """Every host sends to two others, over wires that lose some frames; `carry` makes of a NIC what is attached."""
    topo = l3.topology(WORDS)
    with l3.network(topo, seed=5) as net:
        nics = []
        for host in topo.hosts:
            rng = random.Random(host.name)
            nic = Nic(ip=host.ip, mac=host.mac, gateway_mac=GATEWAY_MAC, config=config, rng=rng)
            net.attach(host.name, carry(nic))
            nics.append(nic)
        for number in range(2 * len(nics)):
            source = number % len(nics)
            target = (source + 1 + number // len(nics)) % len(nics)
            flow = FlowSpec(
                number,
                nics[source].ip,
                nics[target].ip,
                30_001 + 7_000 * number,
                start_ns=500 * number,
                qpn=number,
                sport=1000 + number,
            )
            nics[source].add_flow(flow)
            nics[target].expect_flow(flow)
        if loss:
            net.drop("leaf1", "spine1", loss)
        assert net.run(LIMIT_NS)
        return Result(
            net.trace_sha256,
            net.now_ns,
            [asdict(record) for record in Nic.merge(*nics)],
            [dict(nic.counters) for nic in nics],
        )


def main() -> int:
    """All scenarios as JSON, and how the NICs ran."""
    results = {name: asdict(run(config, loss=0.01)) for name, config in CONFIGS.items()}
    json.dump({"implementation": hosts.IMPLEMENTATION, "results": results}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
