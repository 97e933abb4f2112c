# SPDX-License-Identifier: Apache-2.0
"""Queues: two flows share a link, an M/D/1 queue has the wait that theory gives, PFC loses nothing."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, field, replace

import pytest

from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tailrace.sim.network import SWITCH_CONFIG
from tailrace.sim.network.account import NetworkAccount
from tailrace.switch.core import PfcConfig, SwitchConfig
from tailrace.topology import GATEWAY_MAC, parse_topology
from tests.frame_nic import FrameNic
from tests.sim.network.chain import chain
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, attach_all, network, packet

_GBPS = 10**9
_BATCHES = 50


def test_two_flows_that_send_all_the_time_share_a_link_frame_by_frame() -> None:
    rates_bps = [100 * _GBPS] * 3
    topo = chain(2, rates_bps, [500] * 3, sources=2)
    with network(topo) as net:
        nics = attach_all(net)
        for name in ("h1", "h2"):
            frame = Frame(packet(topo, name, "h3", name.encode()), virtual_bytes=1000)
            nics[name].script = [(0, frame)] * 500
        net.run()
        order = nics["h3"].payloads()
    ahead = 0
    for payload in order:
        ahead += 1 if payload == b"h1" else -1
        assert abs(ahead) <= 1
    assert (len(order), ahead) == (1000, 0)


@dataclass
class PoissonNic(FrameNic):
    """Sends equal frames whose gaps are exponential; notes when each was ready, and when it arrived."""

    frame: Frame
    ready_ns: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)
    sent: int = 0

    @property
    def idle(self) -> bool:
        return self.sent == len(self.ready_ns)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self.arrived_ns.append(now_ns)

    def next_frame(self, now_ns: int) -> Frame | None:
        if self.idle or self.ready_ns[self.sent] > now_ns:
            return None
        self.sent += 1
        return self.frame

    def next_time_ns(self, now_ns: int) -> int | None:
        return None if self.idle else self.ready_ns[self.sent]


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_an_md1_queue_has_its_mean_wait(load: float) -> None:
    """Mean wait: load / (2 (1 - load)) of a service time (Pollaczek, Khinchine).

    A faster server in front (the source's link) changes nothing: in tandem with fixed service times the wait in
    both is that of the slower one alone. The tolerance is four standard errors, by means of batches.
    """
    count, nbytes, rates_bps = 60_000, 12_500, [400 * _GBPS, 100 * _GBPS]
    service_ns = nbytes * 8 * _GBPS // rates_bps[1]
    topo = chain(1, rates_bps, [1000, 1000])
    rng = random.Random(f"M/D/1 {load}")
    ready, time = [], 0.0
    for _ in range(count):
        time += rng.expovariate(load / service_ns)
        ready.append(round(time))
    frame = Frame(packet(topo, "h1", "h2", b""), virtual_bytes=nbytes - OVERHEAD_BYTES)
    source, sink = PoissonNic(frame, ready), PoissonNic(frame)
    with network(topo) as net:
        net.attach("h1", source)
        net.attach("h2", sink)
        assert net.run()
    least_ns = nbytes * 8 * _GBPS // rates_bps[0] + service_ns + 2 * 1000
    waits = [arrived - ready_ns - least_ns for ready_ns, arrived in zip(ready, sink.arrived_ns, strict=True)]
    assert min(waits) == 0
    size = count // _BATCHES
    means = [statistics.fmean(waits[i : i + size]) for i in range(0, count, size)]
    error_ns = statistics.stdev(means) / _BATCHES**0.5
    expected_ns = load / (2 * (1 - load)) * service_ns
    assert error_ns < 0.05 * expected_ns, "enough samples to tell"
    assert abs(statistics.fmean(waits) - expected_ns) < 4 * error_ns


def _incast(config: SwitchConfig) -> tuple[NetworkAccount, list[FlowRecord], int]:
    """Seven hosts of two leaves send to one at once; the account, the records, the longest queue in bytes."""
    topo = parse_topology("leaf-spine:leaves=2,spines=1,hosts=4,rate=100Gbps,delay=500ns")
    nics = {}
    with network(topo, config=config) as net:
        for host in topo.hosts:
            nic_config = NicConfig(
                transport="gbn",
                window_bytes=200_000,
                virtual_payload=True,
                rto_ns=10**7,
                link_rate_bps=host.rate_bps,
            )
            nic = Nic(
                ip=host.ip,
                mac=host.mac,
                gateway_mac=GATEWAY_MAC,
                config=nic_config,
                rng=random.Random(host.id),
            )
            nics[host.name] = nic
            net.attach(host.name, nic)
        target, *sources = topo.hosts
        for host in sources:
            flow = FlowSpec(host.id, host.ip, target.ip, 300_000, 0, host.id, 5000 + host.id)
            nics[host.name].add_flow(flow)
            nics[target.name].expect_flow(flow)
        net.sample(500)
        assert net.run()
        samples = net.samples()
        longest = max(max(samples.queue_bytes(port)) for port in range(len(samples.ports)))
        return net.account(), Nic.merge(*nics.values()), longest


_LIMIT_BYTES = 300_000


def test_pfc_loses_nothing_under_incast() -> None:
    """Queues hold what may come in while pauses take effect: 7 ports of xoff and headroom at most."""
    pfc = PfcConfig((0,), xoff_bytes=20_000, xon_bytes=10_000, headroom_bytes=40_000)
    account, records, longest = _incast(
        replace(SWITCH_CONFIG, pfc=pfc, queue_depth_bytes=_LIMIT_BYTES + 7 * 40_000)
    )
    assert account.balanced
    assert account.made.frames > 0, "there were pauses"
    assert set(account.reasons) == {"pfc_frame"}, "and nothing was dropped but they, obeyed"
    assert all(record.end_ns is not None and record.retransmitted == 0 for record in records)
    assert longest <= 7 * 60_000


def test_without_pfc_the_same_incast_loses() -> None:
    account, records, _ = _incast(replace(SWITCH_CONFIG, queue_depth_bytes=_LIMIT_BYTES))
    assert account.balanced
    assert account.reasons["queue_bytes"] > 0
    assert all(record.end_ns is not None for record in records)
    assert any(record.retransmitted for record in records)
