# SPDX-License-Identifier: Apache-2.0
"""Random networks with traffic and faults of every kind, run in one way or another; all follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from tailrace.sim.network import SWITCH_CONFIG, FrameMatch, Network
from tailrace.sim.network.account import NetworkAccount
from tailrace.sim.network.observation import Sight, TrafficCounts
from tailrace.sim.network.ranks import RankTransport
from tailrace.switch.core import PfcConfig
from tailrace.topology import Topology, parse_topology
from tests.sim.network.l3 import Frame, ListNic, install, network, packet, program

SPAN_NS = 30_000
"""Faults and first sendings fall into this time."""

_WORDS = (
    "leaf-spine:leaves=1,spines=1,hosts=3,rate=10Gbps,delay=1us",
    "leaf-spine:leaves=3,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "fat-tree:k=4,rate=10Gbps,delay=1us",
    "dragonfly:p=1,a=2,h=1,rate=10Gbps,delay=1us",
)
_DELAYS_NS = ((1000,), (0,), (0, 1, 700), (3, 500, 20_000))
_RATES_BPS = ((10**10,), (4 * 10**11, 10**11), (10**9, 3 * 10**9, 7 * 10**10), (123_456_789, 10**10))
_PFC = PfcConfig((0,), xoff_bytes=2000, xon_bytes=1000, headroom_bytes=20_000, quanta=50)


@dataclass
class EchoNic(ListNic):
    """Sends its list, and answers some of what arrives, after a while or at once."""

    rng: random.Random = field(default_factory=random.Random)
    answers: Sequence[Frame] = ()

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        super().on_frame(now_ns, frame, virtual_bytes)
        if self.answers and self.rng.random() < 0.3:
            delay_ns = self.rng.choice((0, 0, 1, 5000))
            self.script.append((now_ns + delay_ns, self.rng.choice(self.answers)))
            self.script.sort(key=lambda item: item[0])


@dataclass(frozen=True)
class Seen:
    """What came of a run."""

    arrived: dict[str, list[tuple[int, bytes, int]]]
    trace_sha256: str
    traffic: TrafficCounts
    account: NetworkAccount
    now_ps: int
    events: int
    drops: list[dict[str, int]]
    sights: list[Sight]
    samples: list[list[int]]


def random_topology(rng: random.Random) -> Topology:
    """Links whose rates and delays are equal, mixed, or none at all; switches with a latency or none."""
    topo = parse_topology(rng.choice(_WORDS))
    delays_ns, rates_bps = rng.choice(_DELAYS_NS), rng.choice(_RATES_BPS)

    return replace(
        topo,
        hosts=tuple(
            replace(host, rate_bps=rng.choice(rates_bps), delay_ns=rng.choice(delays_ns))
            for host in topo.hosts
        ),
        links=tuple(
            replace(link, rate_bps=rng.choice(rates_bps), delay_ns=rng.choice(delays_ns))
            for link in topo.links
        ),
        latency_ns=rng.choice((0, 1, 300)),
    )


class RandomRun:
    """A network with its NICs and faults, ready to run."""

    def __init__(
        self,
        seed: int,
        *,
        faults: bool,
        pfc: bool,
        stepwise: bool = False,
        instant: bool = True,
        transport: RankTransport | None = None,
    ) -> None:
        """instant: some ports may take no time; transport: this is one rank of several."""
        rng = random.Random(f"run {seed}")
        self.topo = random_topology(rng)
        config = structs.replace(
            SWITCH_CONFIG, pfc=_PFC if pfc else None, queue_depth_bytes=0 if pfc else 5000
        )
        self.net = network(self.topo, seed, config=config, stepwise=stepwise, transport=transport)
        if instant:
            self._infinite_ports(rng)
        self.nics = self._attach(rng)
        a, b = rng.sample(self.topo.hosts, 2)
        self.watch = self.net.watch_flow(a.ip, b.ip)
        self.net.sample(rng.choice((977, 10_000)))
        for _ in range(rng.randint(1, 5) if faults else 0):
            self._fault(rng)

    def _infinite_ports(self, rng: random.Random) -> None:
        """Sometimes ports that take no time, so that frames arrive at the instant in which they are sent."""
        if rng.random() < 0.2:
            for wire in self.net.wires:
                if wire.source.node in {switch.name for switch in self.topo.switches} and rng.random() < 0.5:
                    self.net.switch(wire.source.node).port_config(wire.source.port, rate_bps=0, delay_ns=0)

    def _attach(self, rng: random.Random) -> dict[str, EchoNic]:
        nics = {}
        for host in self.topo.hosts:
            peers = [other.name for other in self.topo.hosts if other is not host]
            frames = [
                Frame(
                    packet(self.topo, host.name, rng.choice(peers), rng.randbytes(rng.randint(1, 90))),
                    virtual_bytes=rng.choice((0, 0, 1000)),
                )
                for _ in range(6)
            ]
            times = sorted(rng.choice((0, rng.randrange(SPAN_NS))) for _ in range(rng.randint(0, 15)))
            nic = EchoNic([(time, rng.choice(frames)) for time in times])
            nic.rng, nic.answers = random.Random(f"{host.name} {rng.random()}"), frames[:2]
            if self.net.has(host.name):
                nics[host.name] = nic
                self.net.attach(host.name, nic)
        return nics

    def _fault(self, rng: random.Random) -> None:
        net, topo = self.net, self.topo
        links = [(link.a, link.b) for link in topo.links] + [(host.name, host.switch) for host in topo.hosts]
        a, b = rng.choice(links)
        at_ns, until_ns = sorted(rng.randrange(SPAN_NS) for _ in range(2))
        match rng.choice(("slow", "down", "drop", "test", "hole", "restart")):
            case "slow":
                net.link_rate(a, b, rng.uniform(0.05, 2), at_ns)
                net.link_rate(a, b, 1, until_ns)
            case "down":
                net.link_down(a, b, at_ns)
                net.link_up(a, b, until_ns)
            case "drop":
                net.drop(a, b, rng.random(), matches=FrameMatch.FLOWS, from_ns=at_ns)
            case "test":
                net.drop(a, b, rng.random(), matches=lambda frame: frame[-1] < 128, until_ns=until_ns)
            case "hole":
                pairs = [(x.ip, y.ip) for x in topo.hosts for y in topo.hosts if rng.random() < 0.3]
                net.blackhole(rng.choice(topo.switches).name, pairs, at_ns, until_ns)
            case "restart":
                name = rng.choice(topo.switches).name
                net.switch_restart(name, at_ns, rng.randrange(5000), partial(_restore, net, name))

    def go(self, cuts: Sequence[int] = ()) -> Seen:
        """Runs to the end, standing still at each of some times; everything is accounted for whenever it stands."""
        with self.net as net:
            for until_ns in (*sorted(cuts), 100 * SPAN_NS):
                net.run(until_ns)
                account = net.account()
                assert account.balanced, account
            samples = net.samples()
            return Seen(
                {name: nic.arrived for name, nic in self.nics.items()},
                net.trace_sha256,
                net.traffic(),
                account,
                net.now_ps,
                net.events,
                [net.switch(switch.name).drops() for switch in net.switches],
                net.sights(self.watch),
                [list(column) for of_port in samples.ports.values() for column in of_port],
            )


def _restore(net: Network, name: str) -> None:
    """What a controller does after a restart."""
    if net.has(name):
        net.switch(name).load(program())
        install(net, name)
