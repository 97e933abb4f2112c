# SPDX-License-Identifier: Apache-2.0
"""All three variants of Flowcut under the project's own NICs and transports: order, completion, tables empty."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.schemes.base import resolve
from tailrace.schemes.flowcut.declaration import GROWTH_OFF, FlowcutConfig, ResolvedFlowcut
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import GATEWAY_MAC, Topology
from tests.flowcut.frames import DATA_OPCODES, ETHERTYPE_IPV4, NIC_DATA, ROCE, UDP, Key
from tests.flowcut.run import Run
from tests.flowcut.scenario import Scenario, scenarios

_SETTINGS = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
_NIC_SHIM_BYTES = 8
_RTO_NS = 3_000_000


@dataclass(frozen=True)
class Hosts:
    """How the NICs are set up; `most_bytes` bounds the size of a flow."""

    transport: str
    window_bytes: int
    virtual_payload: bool
    most_bytes: int


_HOSTS = st.builds(
    Hosts,
    transport=st.sampled_from(["gbn", "sr"]),
    window_bytes=st.sampled_from([1_000, 8_000, 60_000]),
    virtual_payload=st.booleans(),
    most_bytes=st.sampled_from([1_000, 30_000, 60_000]),
)


def roce_data(frame: bytes, virtual_bytes: int) -> tuple[object, object, int] | None:
    """Data packets of RoCEv2, of plain NICs and of those that do Flowcut themselves (§II-D)."""
    if int.from_bytes(frame[12:14], "big") != ETHERTYPE_IPV4 or frame[23] != UDP:
        return None
    (dport,) = struct.unpack_from(">H", frame, 36)
    bth = {ROCE: 42, NIC_DATA: 42 + _NIC_SHIM_BYTES}.get(dport)
    if bth is None or frame[bth] not in DATA_OPCODES:
        return None
    qpn, psn = frame[bth + 5 : bth + 8], frame[bth + 9 : bth + 12]
    return (frame[26:34], qpn), psn, len(frame) + virtual_bytes


def nic_config(topology: Topology, scheme: FlowcutConfig, hosts: Hosts) -> NicConfig:
    config = resolve(scheme, topology)
    assert isinstance(config, ResolvedFlowcut)
    age_ns = config.age_ns
    flowcut_nic = None
    if config.variant == "nic":
        growth = config.growth_threshold
        flowcut_nic = FlowcutNicConfig(
            rtt_threshold=config.rtt_threshold,
            growth_threshold=None if growth >= GROWTH_OFF else growth,
            alpha=config.alpha,
            ns_per_byte=8e9 / min(host.rate_bps for host in topology.hosts),
            age_ns=age_ns,
            min_left=config.min_left_packets,
        )
    return NicConfig(
        transport=hosts.transport,
        window_bytes=hosts.window_bytes,
        virtual_payload=hosts.virtual_payload,
        rto_ns=_RTO_NS,
        rto_backoff=2,
        pause_timeout_ns=_RTO_NS // 2,
        flowcut_nic=flowcut_nic,
    )


def flow_specs(topology: Topology, scenario: Scenario, most_bytes: int) -> list[FlowSpec]:
    rng = random.Random(f"specs {scenario.seed}")
    flows = []
    for number in range(scenario.flows):
        src, dst = rng.sample(topology.hosts, 2)
        size, start_ns = rng.randint(1, most_bytes), rng.randrange(100_000)
        flows.append(FlowSpec(number, src.ip, dst.ip, size, start_ns, 100 + number, 5000 + number))
    return flows


def attach_nics(hosts: Hosts, nics: list[Nic], network: Network, scenario: Scenario) -> Iterable[Key]:
    topology = network.topology
    scheme = parse_scheme(scenario.scheme)
    assert isinstance(scheme, FlowcutConfig)
    config = nic_config(topology, scheme, hosts)
    by_ip = {}
    for host in topology.hosts:
        host_config = replace(config, link_rate_bps=host.rate_bps)
        rng = random.Random(f"nic {host.id} {scenario.seed}")
        nic = Nic(ip=host.ip, mac=host.mac, gateway_mac=GATEWAY_MAC, config=host_config, rng=rng)
        by_ip[host.ip] = nic
        network.attach(host.name, nic)
    flows = flow_specs(topology, scenario, hosts.most_bytes)
    for flow in flows:
        by_ip[flow.dst].expect_flow(flow)
        by_ip[flow.src].add_flow(flow)
    nics.extend(by_ip.values())
    return [(flow.src, flow.dst, flow.sport, ROCE, UDP) for flow in flows]


def run(scenario: Scenario, hosts: Hosts) -> tuple[Run, list[FlowRecord]]:
    nics: list[Nic] = []
    run = Run(scenario, functools.partial(attach_nics, hosts, nics), roce_data)
    assert run.go(dumps=False), "every flow completes and the network comes to rest"
    records = Nic.merge(*nics)
    assert all(record.end_ns is not None for record in records)
    return run, records


@given(scenarios(losses=True), _HOSTS)
@_SETTINGS
def test_in_switches_every_flow_completes_in_order_and_leaves_no_entry(
    scenario: Scenario, hosts: Hosts
) -> None:
    finished, records = run(scenario, hosts)
    with finished:
        assert finished.order.overtaken() == []
        if finished.order.delivered() and not scenario.loses:
            assert all(record.out_of_order == 0 for record in records)
            assert finished.leftovers() == []
        finished.pass_the_age()
        finished.leftovers(sweep=True)
        assert finished.leftovers() == []


@given(scenarios(losses=True, flaps=True), _HOSTS, st.sampled_from(["tcp", "gbn", "sr"]))
@_SETTINGS
def test_in_order_while_links_fail_and_come_back(scenario: Scenario, hosts: Hosts, transport: str) -> None:
    """Senders that go on, and senders that wait for timeouts and send everything again."""
    finished, _ = run(scenario, replace(hosts, transport=transport))
    with finished:
        assert finished.order.overtaken() == []
        finished.pass_the_age()
        finished.leftovers(sweep=True)
        assert finished.leftovers() == []


@given(scenarios(losses=True, variant="nic"), _HOSTS)
@_SETTINGS
def test_in_nics_every_flow_completes_in_order(scenario: Scenario, hosts: Hosts) -> None:
    finished, _ = run(scenario, hosts)
    with finished:
        assert finished.order.overtaken() == []
