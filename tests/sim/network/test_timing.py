# SPDX-License-Identifier: Apache-2.0
"""Times on an idle path are those of serialisation and propagation, to the last nanosecond."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tailrace.sim.network import Wire, WireEvent
from tailrace.topology import GATEWAY_MAC
from tests.sim.network.chain import arrivals_ps, chain
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, attach_all, network, packet

_SETTINGS = settings(max_examples=60)
_GBPS = 10**9
_EXACT_BPS = [rate * _GBPS for rate in (40, 100, 200, 400)]
"""Rates at which a byte takes a whole number of picoseconds."""


def _frames_arrive(
    rates_bps: list[int], delays_ns: list[int], sizes: list[int], ready_ns: list[int], latency_ns: int = 0
) -> tuple[list[int], list[int]]:
    """When frames arrived (ns), and when they should (ps, exactly, rounded down)."""
    topo = chain(len(rates_bps) - 1, rates_bps, delays_ns, latency_ns=latency_ns)
    with network(topo) as net:
        nics = attach_all(net)
        frame = packet(topo, "h1", "h2", b"")
        nics["h1"].script = [
            (time, Frame(frame, virtual_bytes=size - OVERHEAD_BYTES))
            for time, size in zip(ready_ns, sizes, strict=True)
        ]
        net.run()
        arrived = [time for time, _, _ in nics["h2"].arrived]
        assert net.now_ns == arrived[-1]
    expected = arrivals_ps([time * 1000 for time in ready_ns], sizes, rates_bps, delays_ns, latency_ns)
    return arrived, [int(time) for time in expected]


@given(data=st.data())
@_SETTINGS
def test_frames_arrive_to_the_nanosecond(data: st.DataObject) -> None:
    """Any sizes, gaps, latency of switches, and mix of exact rates over one to six switches."""
    switches = data.draw(st.integers(1, 6))
    rates_bps = data.draw(st.lists(st.sampled_from(_EXACT_BPS), min_size=switches + 1, max_size=switches + 1))
    delays_ns = data.draw(st.lists(st.integers(0, 5000), min_size=switches + 1, max_size=switches + 1))
    sizes = data.draw(st.lists(st.integers(60, 9000), min_size=1, max_size=30))
    gaps = data.draw(st.lists(st.integers(0, 400), min_size=len(sizes), max_size=len(sizes)))
    ready_ns = [sum(gaps[: number + 1]) for number in range(len(gaps))]
    latency_ns = data.draw(st.sampled_from([0, 1, 500]))
    arrived, expected = _frames_arrive(rates_bps, delays_ns, sizes, ready_ns, latency_ns)
    assert arrived == [time // 1000 for time in expected]


@given(
    rates_bps=st.lists(st.integers(10**6, 4 * 10**11), min_size=2, max_size=5),
    sizes=st.lists(st.integers(60, 9000), min_size=1, max_size=60),
)
@_SETTINGS
def test_at_odd_rates_rounding_never_adds_up(rates_bps: list[int], sizes: list[int]) -> None:
    """A link rounds down by less than a picosecond, however many frames have passed."""
    delays_ns = [100] * len(rates_bps)
    arrived, expected = _frames_arrive(rates_bps, delays_ns, sizes, [0] * len(sizes))
    for time, exact_ps in zip(arrived, expected, strict=True):
        assert (exact_ps - len(rates_bps)) // 1000 <= time <= exact_ps // 1000


@pytest.mark.parametrize("rate_bps", _EXACT_BPS)
@pytest.mark.parametrize("switches", [1, 2, 6])
def test_a_flow_takes_what_its_packets_take(rate_bps: int, switches: int) -> None:
    """A message of a real NIC whose window is never full, seen by the receiver's clock."""
    start_ns, delay_ns = 5000, 700
    rates_bps, delays_ns = [rate_bps] * (switches + 1), [delay_ns] * (switches + 1)
    topo = chain(switches, rates_bps, delays_ns)
    config = NicConfig(
        transport="gbn", window_bytes=10**6, virtual_payload=True, rto_ns=10**9, link_rate_bps=rate_bps
    )
    nics = {
        item.name: Nic(
            ip=item.ip, mac=item.mac, gateway_mac=GATEWAY_MAC, config=config, rng=random.Random(item.id)
        )
        for item in topo.hosts
    }
    flow = FlowSpec(1, topo.host("h1").ip, topo.host("h2").ip, 100_001, start_ns, 7, 5000)
    sizes: list[int] = []

    def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.SENT:
            sizes.append(len(frame) + virtual_bytes)

    with network(topo) as net:
        for name, nic in nics.items():
            net.attach(name, nic)
        nics["h1"].add_flow(flow)
        nics["h2"].expect_flow(flow)
        net.tap(tap, net.wires_between("h1", "s1"))
        assert net.run()
    (record,) = Nic.merge(*nics.values())
    expected = arrivals_ps([start_ns * 1000] * len(sizes), sizes, rates_bps, delays_ns)[-1]
    assert sum(sizes) > flow.bytes
    assert record.end_ns == int(expected) // 1000
    assert record.retransmitted == 0
