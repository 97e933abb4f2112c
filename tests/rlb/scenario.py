# SPDX-License-Identifier: Apache-2.0
"""Random networks under RLB: a topology, a program, thresholds, flows and faults from a few drawn numbers.

Switches pause and hosts obey; thresholds are so low and bursts so large that there are warnings, pauses and
recirculations in most of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.controller.reconcile import install_all
from tailrace.experiments.plan.nic import NO_WINDOW
from tailrace.experiments.plan.pfc import Pfc
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import DCQCN, NicConfig
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.rlb.app import LIMITS, NO_LIMIT, VARIANTS
from tailrace.schemes.rlb.declaration import ResolvedRlb, RlbConfig
from tailrace.sim.network import Network
from tailrace.sim.network.network import SWITCH_CONFIG
from tailrace.switch.core import BufferConfig, PfcConfig, SwitchConfig, V1ModelSwitch
from tailrace.topology import GATEWAY_MAC, Topology, parse_topology
from tests.schemes.planned import intent

TOPOLOGIES = (
    "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "leaf-spine:leaves=2,spines=12,hosts=4,rate=10Gbps,delay=1us",
    "leaf-spine:leaves=3,spines=4,hosts=3,rate=10Gbps,delay=1us",
    "fat-tree:k=4,rate=10Gbps,delay=1us",
)
FAULTS = ("none", "drop", "blackhole", "link-down", "restart")
FRAME_BYTES = 1100
_MTU = 1024
_PORT_BYTES, _SHARED_BYTES = 8 * FRAME_BYTES, 40_000
_FAULT_END_NS = 400_000
_RTO_NS = 1_000_000
END_NS = 500_000_000
"""By then everything is over that ever will be."""


@dataclass(frozen=True)
class Scenario:
    """What hypothesis draws. `bursts`: groups of flows that start together towards one host."""

    topology: str
    seed: int
    variant: str
    limit: str
    most: int
    flows: int
    bursts: int
    transport: str
    fault: str
    shared: bool = False
    """The ports of a switch share a memory that is full before their thresholds are."""
    stay_ns: int = 0

    @property
    def scheme(self) -> RlbConfig:
        """The scheme; Q_th is just above what is under way on a link."""
        most = "" if self.limit == NO_LIMIT else f",most={self.most}"
        words = (
            f"rlb:variant={self.variant},limit={self.limit}{most},queue=0,pfc=20KB,qth=4KB,flows=4,dt=500ns"
        )
        config = parse_scheme(f"{words},stay={self.stay_ns}ns")
        assert isinstance(config, RlbConfig)
        return config

    @property
    def most_allowed(self) -> int:
        """Recirculations of one packet."""
        return self.scheme.most


scenarios = st.builds(
    Scenario,
    topology=st.sampled_from(TOPOLOGIES),
    seed=st.integers(0, 1 << 16),
    variant=st.sampled_from(VARIANTS),
    limit=st.sampled_from(LIMITS),
    most=st.integers(0, 12),
    flows=st.integers(1, 12),
    bursts=st.integers(0, 3),
    transport=st.sampled_from(["gbn", DCQCN]),
    fault=st.sampled_from(FAULTS),
    shared=st.booleans(),
    stay_ns=st.sampled_from([0, 50_000]),
)


@cache
def _topology(words: str) -> Topology:
    return parse_topology(words)


class Run:
    """A scenario's network with its NICs; close it, or use it in a ``with`` statement."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.topology = _topology(scenario.topology)
        resolved = resolve(scenario.scheme, self.topology)
        assert isinstance(resolved, ResolvedRlb)
        self.scheme = resolved
        self._rng = random.Random(f"rlb {scenario}")
        self.network = Network(self.topology, config=self._config(), seed=scenario.seed)
        self.control(frozenset())
        self.flows = self._flows()
        self.nics = self._attach()
        self._schedule_fault()

    def _config(self) -> SwitchConfig:
        """Switches with PFC, and with a rate at which packets go round."""
        limits = Pfc(self.scheme.pause_bytes).of(self.topology, FRAME_BYTES)
        pfc = PfcConfig((0,), limits.xoff_bytes, limits.xon_bytes, limits.headroom_bytes)
        buffer = None
        if self.scenario.shared:
            # and the recirculation port
            ports = 1 + max(len(self.topology.ports_of(switch.name)) for switch in self.topology.switches)
            reserved_bytes = ports * (limits.headroom_bytes + _PORT_BYTES)
            buffer = BufferConfig(reserved_bytes + _SHARED_BYTES, Fraction(1, 2), _PORT_BYTES)
        rate_bps = max(link.rate_bps for link in self.topology.links)
        return replace(SWITCH_CONFIG, pfc=pfc, buffer=buffer, recirc_rate_bps=rate_bps)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.network.close()

    def control(self, down: frozenset[tuple[str, int]]) -> None:
        """Makes all switches hold what they should while the links in `down` are dead."""
        plans = intent(self.topology, self.scenario.scheme, target("virtual"), down)
        install_all(self.network.p4rt, plans)

    def _flows(self) -> list[FlowSpec]:
        rng, hosts, flows = self._rng, self.topology.hosts, []
        for number in range(self.scenario.flows):
            src, dst = rng.sample(hosts, 2)
            start_ns, size = rng.randrange(100_000), rng.randint(1, 200_000)
            flows.append((src, dst, size, start_ns + number))
        for _ in range(self.scenario.bursts):
            victim, start_ns = rng.choice(hosts), rng.randrange(200_000)
            flows += [(host, victim, 64_000, start_ns) for host in hosts if host is not victim]
        return [
            FlowSpec(number, src.ip, dst.ip, size, start_ns, 100 + number, 49_152 + rng.randrange(1000))
            for number, (src, dst, size, start_ns) in enumerate(flows)
        ]

    def _attach(self) -> list[Nic]:
        by_ip = {}
        transport = self.scenario.transport
        window = NO_WINDOW if transport == DCQCN else 64_000
        for host in self.topology.hosts:
            config = NicConfig(
                transport=transport,
                window_bytes=window,
                mtu_bytes=_MTU,
                rto_ns=_RTO_NS,
                link_rate_bps=host.rate_bps,
                virtual_payload=True,
            )
            rng = random.Random(f"{host.name} {self.scenario.seed}")
            nic = Nic(ip=host.ip, mac=host.mac, gateway_mac=GATEWAY_MAC, config=config, rng=rng)
            self.network.attach(host.name, nic)
            by_ip[host.ip] = nic
        for flow in self.flows:
            by_ip[flow.dst].expect_flow(flow)
            by_ip[flow.src].add_flow(flow)
        return list(by_ip.values())

    def _schedule_fault(self) -> None:
        """A fault between 50 and 400 us; nothing is left of it later."""
        rng, network, kind = self._rng, self.network, self.scenario.fault
        link, began_ns = rng.choice(self.topology.links), 50_000
        if kind == "drop":
            network.drop(link.a, link.b, rng.uniform(0.001, 0.1), from_ns=began_ns, until_ns=_FAULT_END_NS)
        elif kind == "blackhole":
            pairs = [(flow.src, flow.dst) for flow in self.flows[::2]]
            network.blackhole(rng.choice(self.topology.switches).name, pairs, began_ns, _FAULT_END_NS)
        elif kind == "link-down":
            ends = frozenset({(link.a, link.a_port), (link.b, link.b_port)})
            network.link_down(link.a, link.b, began_ns)
            network.call_at(began_ns + 50_000, lambda: self.control(ends))
            network.link_up(link.a, link.b, _FAULT_END_NS)
            network.call_at(_FAULT_END_NS + 50_000, lambda: self.control(frozenset()))
        elif kind == "restart":
            name = rng.choice(self.topology.switches).name
            network.switch_restart(name, began_ns, 100_000, lambda: self.control(frozenset()))

    def go(self) -> bool:
        """Run to the end of all flows, and of the fault; whether the network came to rest."""
        rested = self.network.run(END_NS)
        self.network.advance_to(max(self.network.now_ns, 2 * _FAULT_END_NS))
        return rested and self.network.at_rest

    # ---- what is left in the end ----

    def switches(self) -> list[tuple[str, V1ModelSwitch]]:
        """All switches, by name."""
        return [(switch.name, self.network.switch(switch.name)) for switch in self.topology.switches]


def register(switch: V1ModelSwitch, name: str) -> list[int]:
    """All cells of a register."""
    info = next(r for r in switch.model.registers if r.name.rsplit(".", 1)[-1] == name)
    return switch.register_read_all(info.index)


def counter(switch: V1ModelSwitch, name: str) -> list[int]:
    """Packets of all cells of a counter."""
    info = next(c for c in switch.model.counters if c.name.rsplit(".", 1)[-1] == name)
    return [packets for _, packets in switch.counter_cells(info.index, 0, info.size)]
