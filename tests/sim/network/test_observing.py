# SPDX-License-Identifier: Apache-2.0
"""Observation: accounts, samples of ports, paths of flows; none of it changes anything."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections import defaultdict

import pytest
from scapy.layers.l2 import Ether

from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.nic_shim import ShimmedBTH
from tailrace.sim.network import Network, NetworkError, Wire, WireEvent
from tailrace.sim.network.account import Amount
from tailrace.topology import Topology
from tests.sim.network.l3 import Frame, ListNic, attach_all, network, packet, topology
from tests.sim.network.roce import add_flows, fabric

_LEAF_SPINE = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"


def test_samples_show_a_queue_that_fills_and_drains() -> None:
    """At 8 Gb/s a byte takes a nanosecond: frames of 1000 B come in one a us, and leave one in 10 us."""
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        net.link_rate("leaf1", "spine1", 0.1)
        frame = Frame(packet(topo, "h1", "h3", bytes(66)), virtual_bytes=900)
        nics["h1"].script = [(0, frame)] * 5
        (wire,) = net.wires_between("leaf1", "spine1")
        net.sample(2000, [wire])
        net.run(24_000)
        samples = net.samples()
    ((end, of_port),) = samples.ports.items()
    assert end == ("leaf1", wire.source.port)
    assert list(samples.times_ns) == list(range(0, 24_001, 2000))
    # frame i is there from 2000 + 1000 i on, and is being sent from 2000 + 10_000 i on; looked at before that
    times = samples.times_ns
    came = [sum(2000 + 1000 * i < time for i in range(5)) for time in times]
    began = [sum(2000 + 10_000 * i < time for i in range(5)) for time in times]
    assert list(of_port.queue_bytes) == [1000 * (a - b) for a, b in zip(came, began, strict=True)]
    sent = [0, *(1000 * (b - a) for a, b in itertools.pairwise(began))]
    assert list(of_port.tx_bytes) == sent
    assert not any(of_port.paused)


def test_bad_samples_are_refused() -> None:
    with network(topology()) as net:
        with pytest.raises(NetworkError, match="nothing is sampled"):
            net.samples()
        with pytest.raises(NetworkError, match="a period of 0 ns is not positive"):
            net.sample(0)
        with pytest.raises(NetworkError, match="h1:0>leaf1:1 does not begin at a switch"):
            net.sample(1, net.wires_between("h1", "leaf1"))


@pytest.mark.parametrize("scheme", ["ecmp", "spray", "flowcut:variant=full,left=0", "flowcut:variant=nic"])
def test_the_path_of_a_flow_is_what_taps_see(scheme: str) -> None:
    """Behind the shims of switches and of NICs, too; PSNs by Scapy."""
    net, nics = fabric(_LEAF_SPINE, scheme)
    expected: list[tuple[int, str, int, int]] = []
    with net:
        flows = add_flows(net, nics, [("h1", "h3", 40_000), ("h2", "h3", 9000), ("h3", "h1", 9000)])
        wanted = flows[0]

        def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
            if event is not WireEvent.RECEIVED or wire.target.node.startswith("h"):
                return
            layers = Ether(frame)
            bth = layers.getlayer(BTH) or layers.getlayer(ShimmedBTH)
            if bth is not None and (layers["IP"].src, layers["IP"].dst) == (wanted.src, wanted.dst):
                expected.append((now_ns, wire.target.node, wire.target.port, bth.psn))

        net.tap(tap)
        watch = net.watch_flow(wanted.src, wanted.dst)
        nobody = net.watch_flow(wanted.src, "10.0.9.9")
        assert net.run()
        sights = [at for at in net.sights(watch) if at.psn is not None]  # NIC ACKs have no PSN
        seen = [(at.time_ps // 1000, at.switch, at.in_port, at.psn) for at in sights]
        assert net.sights(nobody) == []
    assert len(expected) >= 3 * 40
    assert sorted(seen) == sorted(expected)
    assert [time for time, *_ in seen] == sorted(time for time, *_ in seen)
    by_switch = defaultdict(set)
    for _, switch, _, psn in seen:
        by_switch[switch].add(psn)
    assert by_switch["leaf1"] == by_switch["leaf2"]


def test_addresses_that_are_none_are_refused() -> None:
    with network(topology()) as net, pytest.raises(NetworkError, match=r"no flow to watch: .*'h1'"):
        net.watch_flow("h1", "10.0.0.1")


def test_an_account_says_where_everything_is() -> None:
    """Three frames at 0, 2 and 4 us: one has arrived, one waits for its turn on a slow link, one is on a wire."""
    topo = topology()
    frame = packet(topo, "h1", "h2", bytes(66))
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(time, Frame(frame, 900)) for time in (0, 2000, 4000)]
        assert not net.run(5000)
        account = net.account()
        assert account.balanced
        assert account.sent == Amount(3, 2700)
        assert account.delivered == Amount(1, 900)
        assert account.under_way == Amount(2, 1800)
        assert account.queued == Amount()
        assert net.run()
        assert net.account().delivered == Amount(3, 2700)


def test_what_is_put_into_a_switch_by_hand_is_noticed() -> None:
    topo = topology()
    with network(topo) as net:
        net.switch("leaf1").inject(1, packet(topo, "h1", "h2", b"x"), at_ns=0)
        net.run()
        account = net.account()
        assert not account.balanced
        assert account.unsound == ("leaf1",)
        assert account.delivered == Amount(1, 0)


def test_counts_can_be_read_after_the_end() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h2", b"x")))]
        net.run()
        trace = net.trace_sha256
    assert (net.trace_sha256, net.traffic().delivered, net.traffic().lost) == (trace, 2, 0)
    with pytest.raises(NetworkError, match="the network is closed"):
        net.run()
    with pytest.raises(NetworkError, match="the network is closed"):
        net.account()
    with pytest.raises(NetworkError, match="the network is closed"):
        net.link_rate("h1", "leaf1", 0.5)


def test_a_network_that_looks_at_itself_is_freed() -> None:
    """Taps, tests of faults and NICs may refer to the network."""

    class Knowing(ListNic):
        network: Network

    def look(topo: Topology) -> weakref.ref[Network]:
        def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
            assert now_ns == net.now_ns

        with network(topo) as net:
            nics = attach_all(net)
            nics["h1"].script = [(0, Frame(packet(topo, "h1", "h2", b"x")))]
            knowing = Knowing()
            knowing.network = net
            net.attach("h2", knowing)
            net.tap(tap)
            net.drop("h1", "leaf1", 0.5, matches=lambda frame: net.now_ns < 0)
            net.run()
            return weakref.ref(net)

    reference = look(topology())
    gc.collect()
    assert reference() is None
