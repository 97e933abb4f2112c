# SPDX-License-Identifier: Apache-2.0
"""Random scenarios: a network whose paths differ, flows, faults. Everything follows from a few drawn numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from hypothesis import strategies as st

from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.sim.network.wire import FrameTest
from tailrace.topology import Host, Link, Topology, parse_topology
from tests.flowcut.fabric import build, control
from tests.flowcut.frames import ETHERTYPE_TAILRACE, ROCE, TCP, UDP, Kind, parse
from tests.flowcut.sources import Packet, Script

TOPOLOGIES = (
    "leaf-spine:leaves=2,spines=2,hosts=2,rate=1Gbps,delay=1us",
    "leaf-spine:leaves=2,spines=4,hosts=2,rate=1Gbps,delay=1us",
    "leaf-spine:leaves=3,spines=3,hosts=2,rate=1Gbps,delay=1us",
    "fat-tree:k=4,rate=1Gbps,delay=1us",
    str(Path(__file__).with_name("irregular.json")),
)
_DELAY_FACTORS = (1, 1, 2, 7, 25)
_SERVICES = ((ROCE, UDP), (ROCE, TCP), (80, UDP), (80, TCP))
_KIN = 3
"""Flows in a row whose keys differ in protocol or destination port only."""
_SLOWEST = 0.1
"""What the controller's default age allows for."""


@cache
def _topology(words: str) -> Topology:
    return parse_topology(words)


@dataclass(frozen=True)
class Scenario:
    """What hypothesis draws. Rates of loss are shares of the frames on each link between switches."""

    topology: str
    seed: int
    scheme: str
    flows: int
    slow_links: int = 0
    data_loss: float = 0.0
    ack_loss: float = 0.0
    pause_loss: float = 0.0
    flaps: int = 0
    """Links that go down and come back, each noticed by the controller a while later."""
    obeys: bool = True

    @property
    def loses(self) -> bool:
        return self.data_loss > 0 or self.ack_loss > 0 or self.flaps > 0

    def network(self) -> Network:
        """The network with its faults, before traffic; the delays of its links differ."""
        rng = random.Random(f"delays {self.seed}")
        topology = _topology(self.topology)
        links = tuple(
            replace(link, delay_ns=link.delay_ns * rng.choice(_DELAY_FACTORS)) for link in topology.links
        )
        network = build(replace(topology, links=links), parse_scheme(self.scheme), self.seed)
        for _ in range(self.slow_links):
            link = rng.choice(links)
            at_ns, until_ns = sorted(rng.randrange(400_000) for _ in range(2))
            network.link_rate(link.a, link.b, rng.uniform(_SLOWEST, 1), at_ns)
            network.link_rate(link.a, link.b, 1, until_ns)
        for link in links:
            network.drop(link.a, link.b, self.data_loss, matches=_is(Kind.DATA))
            network.drop(link.a, link.b, self.ack_loss, matches=_is(Kind.ACK))
            network.drop(link.a, link.b, self.ack_loss, matches=_is(Kind.REPLY))
        for host in topology.hosts:
            network.drop(host.switch, host.name, self.pause_loss, matches=_is(Kind.PAUSE), one_way=True)
        for link in rng.sample(links, self.flaps):
            self._flap(network, link, rng)
        return network

    def _flap(self, network: Network, link: Link, rng: random.Random) -> None:
        down_ns, up_ns = sorted(rng.randrange(400_000) for _ in range(2))
        scheme = parse_scheme(self.scheme)
        network.link_down(link.a, link.b, down_ns)
        network.link_up(link.a, link.b, up_ns)
        for at_ns, down in ((down_ns, frozenset({(link.a, link.a_port)})), (up_ns, frozenset())):
            noticed_ns = at_ns + rng.randrange(100_000)
            network.call_at(noticed_ns, partial(control, network, scheme, down))

    def scripts(self) -> list[Script]:
        """Flows between hosts of any two switches, few of them busy enough to need more than their share."""
        rng = random.Random(f"flows {self.seed}")
        hosts = _topology(self.topology).hosts
        return [self._script(rng, hosts, number) for number in range(self.flows)]

    def _script(self, rng: random.Random, hosts: Sequence[Host], number: int) -> Script:
        kin = random.Random(f"kin {self.seed} {number // _KIN}")
        src, dst = kin.sample([host.name for host in hosts], 2)
        dport, protocol = kin.sample(_SERVICES, _KIN)[number % _KIN]
        sizes = rng.choice([(64,), (1100,), (64, 300, 1100), (1500, 64)])
        gaps = rng.choice([(0,), (0, 0, 0, 30_000), (2_000, 9_000), (0, 500, 100_000)])
        packets = tuple(Packet(rng.choice(gaps), rng.choice(sizes)) for _ in range(rng.randint(1, 40)))
        timeout_ns = rng.choice([50_000, 1_000_000]) if self.obeys else 0
        sport = 1000 + number // _KIN
        return Script(src, dst, sport, dport, protocol, rng.randrange(100_000), packets, timeout_ns)


def _is(kind: Kind) -> FrameTest:
    """Frames of a kind."""

    def matches(frame: bytes) -> bool:
        if kind in (Kind.ACK, Kind.PAUSE) and int.from_bytes(frame[12:14], "big") != ETHERTYPE_TAILRACE:
            return False
        return parse(frame).kind is kind

    return matches


_SHARES = st.sampled_from([0.0, 0.0, 0.002, 0.02, 0.1])


@st.composite
def scenarios(draw: st.DrawFn, /, *, losses: bool = False, flaps: bool = False, **fixed: str) -> Scenario:
    """Any scenario; without `losses` and `flaps` nothing is lost but at the queues' limits.

    `fixed` are options of the scheme. Flaps are for the full variant: a switch without state follows the
    controller at once, whatever is in flight behind it.
    """
    topology = draw(st.sampled_from(TOPOLOGIES))
    pause = "flow" if fixed.get("variant") == "nic" else draw(st.sampled_from(("flow", "flow", "class")))
    options = {
        "variant": draw(st.sampled_from(("full",) if flaps else ("full", "ingress"))),
        "buckets": draw(st.sampled_from([1, 2, 8, 1024])),
        "queue": draw(st.sampled_from(["4KB", "20KB", "200KB"])),
        "rtt": draw(st.sampled_from([1.1, 2, 4])),
        "growth": draw(st.sampled_from(["off", "0.1", "1"])),
        "alpha": draw(st.sampled_from([0.05, 0.5, 1])),
        "left": draw(st.sampled_from([0, 5])),
        "pause": pause,
        "credit": draw(st.sampled_from([0, 2000])) if pause == "flow" else 0,
        "first": draw(st.sampled_from(["ecmp", "least-loaded"])),
        "baseline": draw(st.sampled_from(["observed", "topology"])),
        "seed": draw(st.integers(0, 3)),
    }
    words = ",".join(f"{key}={value}" for key, value in (options | fixed).items())
    return Scenario(
        topology,
        draw(st.integers(0, 2**32)),
        f"flowcut:{words}",
        draw(st.integers(1, 30)),
        slow_links=draw(st.integers(0, 3)),
        data_loss=draw(_SHARES) if losses else 0.0,
        ack_loss=draw(_SHARES) if losses else 0.0,
        pause_loss=draw(st.sampled_from([0.0, 0.0, 0.5])),
        flaps=draw(st.integers(1, 2)) if flaps else 0,
        obeys=draw(st.booleans()),
    )
