# SPDX-License-Identifier: Apache-2.0
"""Whole flows on many paths: they complete, leave what is bad, and come back to it when it is good again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.nic import port
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import ALGORITHMS, NicConfig, SteeringConfig
from tests.codec.frames import Ack, Data
from tests.hosts.network import VirtualNetwork, flow, make_nic
from tests.hosts.steering.fabric import Paths
from tests.hosts.steering.path_lists import path_list
from tests.hosts.trimming import TRIMMED_BYTES

RTO_NS = 200_000


def config(algorithm: str | None, window: int = 32, rto_ns: int = RTO_NS, **changes: Any) -> NicConfig:
    return NicConfig(
        transport="dctcp",
        mtu_bytes=1000,
        window_bytes=window * 1000,
        rto_ns=rto_ns,
        rto_backoff=2,
        virtual_payload=True,
        steering=SteeringConfig(algorithm=algorithm, **changes) if algorithm else None,
        path_rtt_ns=20_000,
    )


def shares(paths: Paths, network: VirtualNetwork, since_ns: int = 0, until_ns: int = 1 << 60) -> Counter[int]:
    """Data packets sent on each path between two times."""
    return Counter(
        paths.of(arrival.frame)
        for arrival in network.sent
        if isinstance(arrival.parsed, Data) and since_ns <= arrival.now_ns < until_ns
    )


@settings(max_examples=60)
@given(
    algorithm=st.sampled_from([name for name, needed in ALGORITHMS.items() if needed == "dctcp"]),
    delays=st.lists(st.integers(500, 40_000), min_size=1, max_size=6),
    loss=st.sampled_from([0.0, 0.03, 0.2]),
    marks=st.sampled_from([0.0, 0.3, 1.0]),
    trims=st.sampled_from([0.0, 0.1, 0.6]),
    window=st.integers(1, 60),
    bitmap=st.sampled_from([1, 7, 64, 4096]),
    first_psn=st.sampled_from([0, 2**24 - 30]),
    rtt=st.sampled_from([0, 1, 30_000]),
    seed=st.integers(0, 100),
)
def test_every_flow_completes_with_exactly_its_bytes(
    algorithm, delays, loss, marks, trims, window, bitmap, first_psn, rtt, seed
):
    """On any paths, and the records say what happened."""
    nic_config = dataclasses.replace(
        config(algorithm, window), bitmap_packets=bitmap, first_psn=first_psn, path_rtt_ns=rtt
    )
    paths = Paths(delays, {0: marks}, {1: trims, 0: trims / 2}, loss, seed=seed)
    network = paths.network(nic_config)
    network.add(flow(1, 60_500), flow(2, 999, src=2, dst=1))
    network.run()
    assert all(nic.idle and not nic.counters for nic in network.nics)
    assert {1: 60_500, 2: 999} == {seen.flow.id: seen.bytes for seen in network.receivers()}
    cut = Counter(
        arrival.parsed.qpn - 100
        for arrival in network.arrivals
        if isinstance(arrival.parsed, Data) and len(arrival.frame.data) == TRIMMED_BYTES
    )
    for record in network.records():
        assert cut[record.id] == record.trimmed
        assert record.packets == record.explored + record.reused
        assert record.packets - record.retransmitted == -(-record.bytes // 1000)
        assert record.received + record.trimmed <= record.packets
        assert record.nacks <= record.trimmed
        if not loss:
            assert 0 == record.timeouts
            # nothing is lost but what was trimmed, and that is sent again at once
            assert record.nacks == record.trimmed == record.retransmitted


def test_answers_take_the_path_of_their_packets():
    """And tell the packet beside what is in order."""
    paths = Paths([1000, 2000, 3000], trims={2: 0.5})
    network = paths.network(config("ops"))
    network.add(flow(1, 50_000))
    network.run()
    data = [
        (arrival.parsed.psn, arrival.parsed.wire_sport)
        for arrival in network.arrivals
        if isinstance(arrival.parsed, Data)
    ]
    acks = [arrival.parsed for arrival in network.sent if isinstance(arrival.parsed, Ack)]
    assert data == [(ack.msn, ack.sport) for ack in acks]
    assert {0x1F, 0x7F} == {ack.syndrome for ack in acks}


def test_scout_settles_on_the_shortest_good_path():
    """Not on the one that marks everything, though that is shorter still."""
    paths = Paths([2000, 3000, 4000, 5000, 6000], marks={0: 1.0})
    network = paths.network(config("scout", ecn_threshold=3))
    network.add(flow(1, 3_000_000))
    network.run()
    late = shares(paths, network, since_ns=500_000)
    assert late[1] > 0.9 * sum(late.values())


def test_spray_spreads_over_all_good_paths_and_avoids_the_bad_one():
    """Paths of equal length, one of which marks everything: it is used only when a path is drawn."""
    paths = Paths([5000] * 5, marks={2: 1.0})
    network = paths.network(config("spray", window=12))
    network.add(flow(1, 3_000_000))
    network.run()
    late = shares(paths, network, since_ns=500_000)
    total = sum(late.values())
    assert late[2] < 0.05 * total
    assert all(late[path] > 0.1 * total for path in (0, 1, 3, 4))


def test_a_flow_keeps_its_order_on_one_path():
    """ecmp never changes it, so nothing is out of order on paths of unequal length."""
    for algorithm, ordered in (("ecmp", True), ("ops", False)):
        paths = Paths([2000, 9000, 20_000])
        network = paths.network(config(algorithm))
        network.add(flow(1, 200_000))
        network.run()
        (record,) = network.records()
        assert ordered == (record.out_of_order == 0)
        assert ordered == (record.out_of_sequence == 0)
        assert 0 == record.retransmitted


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_a_failed_path_is_left_within_a_timeout_and_used_again_later(algorithm):
    """The first timeout blocks it, both directions being dead; after the timer it carries packets again."""
    down_ns, up_ns, timer_ns = 300_000, 1_500_000, 1_600_000
    paths = Paths([2000, 4000, 4000, 4000], down={0: (down_ns, up_ns)})
    nic_config = config(algorithm, rto_ns=50_000, timer_ns=timer_ns, explore_threshold=20)
    network = paths.network(nic_config)
    network.add(flow(1, 3_500_000))
    network.run()
    assert all(nic.idle for nic in network.nics)
    # a path that is in the buffer of good ones may be taken once more for each entry
    left_ns = down_ns + 50_000
    assert shares(paths, network, 0, down_ns)[0] > 0
    assert shares(paths, network, left_ns, left_ns + timer_ns)[0] <= (8 if algorithm == "spray" else 0)
    assert shares(paths, network, left_ns + timer_ns)[0] > 0
    (record,) = network.records()
    assert 0 < record.blocked == record.timeouts < 100


def test_ops_goes_on_losing_packets_on_a_failed_path():
    """What Spritz is compared with: it draws the path again and again."""
    paths = Paths([2000, 4000, 4000, 4000], down={0: (0, 1 << 60)})
    lost = {}
    for algorithm in ("ops", "scout", "spray"):
        network = paths.network(config(algorithm, rto_ns=50_000, timer_ns=10_000_000))
        network.add(flow(1, 1_000_000))
        network.run()
        (record,) = network.records()
        assert record.end_ns is not None
        lost[algorithm] = record.timeouts
    assert lost["ops"] > 4 * max(lost["scout"], lost["spray"])


def test_steps_of_a_collective_go_on_with_what_the_last_one_learnt():
    """With keep_ns a short flow begins on the good paths of the one before it."""
    explored = {}
    for keep_ns in (0, 1_000_000):
        paths = Paths([2000] * 6)
        network = paths.network(config("scout", window=4, keep_ns=keep_ns))
        first = flow(1, 100_000)
        network.add(first, structs.replace(flow(2, 4_000), after=(1,)))
        network.run()
        explored[keep_ns] = network.records()[1].explored
    assert {0: 4, 1_000_000: 0} == explored


@pytest.mark.parametrize("algorithm", ["scout", None])
def test_background_flows_are_steered_by_ecmp_and_say_so(algorithm):
    """DSCP STEERED in their packets and in the answers; not so in those of the NIC's own flows."""
    paths = Paths([2000, 3000, 4000])
    network = paths.network(config(algorithm))
    network.add(flow(1, 9_000), structs.replace(flow(2, 9_000), steering="ecmp"))
    network.run()
    marks: dict[tuple[str, int], set[int]] = {}
    for sent in network.sent:
        assert isinstance(sent.parsed, Data | Ack)
        key = type(sent.parsed).__name__, sent.parsed.qpn - 100
        marks.setdefault(key, set()).add(sent.frame.data[15] >> 2)
    steered, default = {int(Dscp.STEERED)}, {int(Dscp.DEFAULT)}
    assert {("Data", 1): default, ("Ack", 1): default, ("Data", 2): steered, ("Ack", 2): steered} == marks


def test_coarse_classes_are_tags_of_the_data():
    """The VLAN ID that the path list gives for the EV; answers have none."""
    fine = path_list(1, 1, 1)
    listed = PathList(fine.evs, fine.latencies_ps, fine.weights, vlans=(2, 3, 3))
    nic_config = dataclasses.replace(config("ops"), virtual_payload=False)
    sender = make_nic(1, nic_config, paths=lambda host: listed)
    sender.add_flow(flow(1, 30_000))
    its_port = port(sender)
    seen = set()
    for now_ns in range(30):
        sent = its_port.depart(now_ns)
        assert isinstance(sent, tuple)
        frame, _ = sent
        assert b"\x81\x00" == frame[12:14]
        seen.add((int.from_bytes(frame[38:40], "big"), int.from_bytes(frame[14:16], "big")))
    assert {(500, 2), (501, 3), (502, 3)} == seen
