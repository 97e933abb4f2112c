# SPDX-License-Identifier: Apache-2.0
"""Hermes in NICs: what flows share, what their packets tell, and how they get around what is slow or dead."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.options.dcqcn import HermesNicConfig
from tailrace.hosts.options.nic import NicConfig, SteeringConfig
from tailrace.hosts.steering.assign import SteeringFactory
from tailrace.hosts.steering.hermes import Hermes
from tests.codec.frames import Data
from tests.hosts.network import RATE_BPS, flow
from tests.hosts.steering.fabric import Paths
from tests.hosts.steering.hermes_story import FIRST, path_list, settings_of


def steerings(place: str) -> SteeringFactory:
    config = NicConfig(
        transport="dcqcn", steering=SteeringConfig(algorithm="hermes"), hermes=settings_of(stale_ns=10**12)
    )
    return SteeringFactory(config, lambda dst: path_list(4, place), random.Random(2))


def spec(number: int, dst: str) -> FlowSpec:
    return FlowSpec(number, "10.0.0.1", dst, 1000, 0, number, number)


@pytest.mark.parametrize(("place", "shared"), [("leaf2", True), ("", False)])
def test_flows_to_one_place_share_what_they_sense(place, shared):
    """Also to different hosts, if the path list says so; always to the same one."""
    factory = steerings(place)
    first, second, other = (
        factory.start(0, spec(number, dst), 0)
        for number, dst in ((1, "10.0.0.2"), (2, "10.0.0.2"), (3, "10.0.0.3"))
    )
    assert isinstance(first, Hermes)
    assert isinstance(second, Hermes)
    assert isinstance(other, Hermes)
    path = first.next_ev(0) - FIRST
    for _ in range(9):
        first.on_frame(0, 1000)
    assert path != second.next_ev(0) - FIRST
    assert shared == (first._host.paths is other._host.paths)
    assert first._host is second._host
    assert first._host is not other._host


def nic_config(**changes: Any) -> NicConfig:
    return NicConfig(
        transport="dcqcn",
        mtu_bytes=1000,
        window_bytes=0,
        link_rate_bps=RATE_BPS,
        virtual_payload=True,
        rto_ns=100_000,
        rto_backoff=1,
        steering=SteeringConfig(algorithm="hermes"),
        hermes=HermesNicConfig(**{"hop_ns": 10_000, "size_bytes": 20_000, "rate_share": 1.0, **changes}),
    )


def test_round_trip_times_and_marks_are_those_of_each_path():
    """From what NICs send and answer; two flows begin on different paths."""
    paths = Paths([2000, 9000], marks={1: 1.0})
    network = paths.network(nic_config(rate_share=0.0))
    network.add(flow(1, 40_000), flow(2, 40_000))
    hosts = []
    network.at(1, lambda: hosts.append(network.nics[0]._steerings._hermes_hosts["10.0.0.2"]))
    network.run()
    known = hosts[0].paths
    now_ns = network.now_ns
    fast, slow = known.rtt_ns(now_ns, 0), known.rtt_ns(now_ns, 1)
    frame, answer = 54 + 1000 + 4, 62
    assert 2 * 2000 + frame + answer <= fast < 2 * 2000 + 3 * frame
    assert 2 * 9000 + frame + answer <= slow < 2 * 9000 + 3 * frame
    assert 0 == known.ecn(now_ns, 0)
    assert known.ecn(now_ns, 1) > 0.8 * 2**20


def test_a_flow_leaves_a_congested_path_for_a_better_one():
    """After S bytes, and no earlier than it has sensed that; it stays on the better one."""
    begun = set()
    for seed in range(10):
        network = Paths([40_000, 2000], marks={0: 1.0}, seed=seed).network(nic_config(base_rtt_ns=5000))
        network.add(flow(1, 200_000))
        network.run()
        ports = [packet.wire_sport - FIRST for packet in network.data_sent()]
        begun.add(ports[0])
        if ports[0] == 1:
            assert {1} == set(ports)
        else:
            assert 20 < ports.index(1)
            assert {1} == set(ports[ports.index(1) :])
    assert {0, 1} == begun


def test_a_black_hole_is_found_and_avoided():
    """The first timeout already makes the flow choose anew; all bytes arrive."""
    paths = Paths([2000, 2000, 2000], down={1: (0, 10**12)})
    network = paths.network(nic_config())
    for number in range(12):
        network.add(flow(number, 30_000, start_ns=number * 400_000))
    network.run()
    assert all(seen.done for seen in network.senders())
    lost = [
        arrival.now_ns
        for arrival in network.sent
        if isinstance(arrival.parsed, Data) and paths.of(arrival.frame) == 1
    ]
    assert lost
    assert 1 <= sum(seen.blocked for seen in network.senders()) <= 2
    assert max(lost) < 11 * 400_000


def test_a_sample_of_a_packet_sent_twice_is_none():
    """Karn: the answer may be that of the first one."""
    sent: list[int] = []

    def fate(now_ns: int, frame: Any, parsed: Any) -> int | None:
        if isinstance(parsed, Data) and parsed.psn == 3 and not sent:
            sent.append(now_ns)
            return None
        return 2000

    network = Paths([2000]).network(nic_config())
    network.fate = fate
    network.add(flow(1, 8_000))
    network.run()
    known = network.nics[0]._steerings._hermes_hosts["10.0.0.2"].paths
    assert known.rtt_ns(network.now_ns, 0) < 2 * 2000 + 3 * 1100
    assert (1, 0) == (known._lost[0], network.senders()[0].timeouts)
