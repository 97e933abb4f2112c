# SPDX-License-Identifier: Apache-2.0
"""What a dead link costs: as soon as the controller has withdrawn it, every flow goes on with its next packet, in
order, whatever of it was on the link or behind it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.schemes.base import resolve
from tailrace.schemes.flowcut.declaration import ResolvedFlowcut
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run
from tailrace.topology import Topology, parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns
from tests.flowcut.fabric import build, control
from tests.flowcut.frames import ROCE, UDP, Key, Kind, parse
from tests.flowcut.order import OrderCheck
from tests.flowcut.sources import Packet, Script, attach

LEAF_SPINE = "leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us"
FAT_TREE = "fat-tree:k=4,rate=10Gbps,delay=1us"
DRAGONFLY = "dragonfly:p=2,a=2,h=2,groups=3,rate=10Gbps,delay=1us"
DOWN_NS, NOTICED_NS = 200_000, 300_000
FLOWS, PACKETS, GAP_NS, SIZE = 40, 400, 1_000, 1_000
ROUND_TRIPS = 3
"""From when a packet is sent to when it arrives; flows meet in queues."""


@dataclass
class Moving:
    """When each packet left its host, and when it arrived."""

    network: Network
    sent: dict[tuple[Key, int], int] = field(default_factory=dict)
    arrived: dict[tuple[Key, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hosts = {host.name for host in self.network.topology.hosts}
        self._hosts = hosts
        self.network.tap(self._tap, [w for w in self.network.wires if {w.source.node, w.target.node} & hosts])

    def _tap(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        parsed = parse(frame, virtual_bytes)
        if parsed.kind is not Kind.DATA:
            return
        if event is WireEvent.SENT and wire.source.node in self._hosts:
            self.sent[parsed.key, parsed.packet] = now_ns
        elif event is WireEvent.RECEIVED and wire.target.node in self._hosts:
            self.arrived[parsed.key, parsed.packet] = now_ns

    def slowest_ns(self, since_ns: int) -> int:
        """The longest time from `since_ns` until a flow that went on sending was heard of again."""
        slowest = 0
        for key in {key for key, _ in self.sent}:
            times = {n: at for (other, n), at in self.sent.items() if other == key and at >= since_ns}
            first = min(times.values())
            back = min(self.arrived[key, n] for n in times if (key, n) in self.arrived)
            slowest = max(slowest, back - first)
        return slowest

    def lost_before(self, until_ns: int) -> int:
        """Packets sent before that never arrived."""
        return sum(at < until_ns and which not in self.arrived for which, at in self.sent.items())


def scripts(topology: Topology, rng: random.Random) -> list[Script]:
    """Steady flows between hosts of different switches, none of which waits for anybody."""
    drawn = []
    for number in range(FLOWS):
        src, dst = rng.sample(topology.hosts, 2)
        while src.switch == dst.switch:
            src, dst = rng.sample(topology.hosts, 2)
        packets = tuple(Packet(rng.randrange(GAP_NS, 2 * GAP_NS) * 8, SIZE) for _ in range(PACKETS // 8))
        drawn.append(Script(src.name, dst.name, 1000 + number, ROCE, UDP, number * 100, packets))
    return drawn


CASES = [
    *product((LEAF_SPINE,), ("full", "ingress", "nic"), range(4)),
    *product((FAT_TREE, DRAGONFLY), ("full",), range(4)),
]


@pytest.mark.parametrize(("topology_spec", "variant", "seed"), CASES)
def test_every_flow_goes_on_when_the_controller_knows(topology_spec: str, variant: str, seed: int) -> None:
    """A link anywhere on their ways, next to the switch of the source or further on; the age is far longer than the
    whole run."""
    rng = random.Random(f"{topology_spec} {variant} {seed}")
    topology = parse_topology(topology_spec)
    scheme = parse_scheme(f"flowcut:variant={variant},rtt=2,left=0,first=least-loaded")
    config = resolve(scheme, topology)
    assert isinstance(config, ResolvedFlowcut) and config.age_ns > 10 * NOTICED_NS
    link = rng.choice(topology.links)
    with build(topology, scheme, seed) as network:
        attach(network, scripts(topology, rng))
        check, moving = OrderCheck(network), Moving(network)
        network.link_down(link.a, link.b, DOWN_NS)
        down = frozenset({(link.a, link.a_port), (link.b, link.b_port)})
        network.call_at(NOTICED_NS, partial(control, network, scheme, down))
        assert network.run()
        assert moving.lost_before(NOTICED_NS) > 0
        assert moving.slowest_ns(NOTICED_NS) <= ROUND_TRIPS * base_rtt_ns(topology, FULL_FRAME_BYTES)
        if variant != "nic":
            assert check.overtaken() == []


@pytest.mark.parametrize(("variant", "transport"), [*product(("full", "ingress", "nic"), ("tcp", "gbn"))])
def test_transports_lose_no_more_than_their_timeouts(variant: str, transport: str) -> None:
    """With the project's NICs: what stood still before goes on with the first or second timeout."""
    values = {
        "scheme": f"flowcut:variant={variant}",
        "topology": LEAF_SPINE,
        "workload": "permutation:size=256KiB,peers=remote",
        "transport": transport,
        "target": "virtual",
        "seed": 5,
    }
    spent = []
    for fault in ([], ["link-down:link=leaf1-spine1,at=50us"]):
        planned = plan(make({**values, "fault": fault}), "virtual")
        result = run(planned, VirtualBackend(), lambda _progress: None, label="it")
        spent.append(max(row.fct_ns or 10**12 for row in result.rows))
        assert sum(row.out_of_order or 0 for row in result.rows) == 0 or fault
    rto_ns = planned.job.nic.rto_ns
    assert spent[1] - spent[0] <= 3 * rto_ns + spent[0]
