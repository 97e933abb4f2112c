# SPDX-License-Identifier: Apache-2.0
"""Which steering a flow gets, and what is kept of it; and what path lists and settings may be."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from msgspec import structs

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import NicConfig, SteeringConfig
from tailrace.hosts.steering.assign import SteeringFactory
from tailrace.hosts.steering.base import ACK, ACK_ECN, TIMEOUT
from tailrace.hosts.steering.oblivious import FlowEcmp, Ops
from tailrace.hosts.steering.scout import Scout
from tailrace.hosts.steering.spray import Spray
from tailrace.hosts.steering.spritz import Spritz
from tests.hosts.network import flow, make_nic
from tests.hosts.steering.path_lists import path_list

PATHS = path_list(800, 1000, 1200)


def config(algorithm: str | None = "scout", **changes: Any) -> NicConfig:
    steering = SteeringConfig(algorithm=algorithm, **changes) if algorithm else None
    return NicConfig(transport="dctcp", steering=steering)


def steerings(nic: NicConfig) -> tuple[SteeringFactory, list[str]]:
    """And the hosts that its endpoint table was asked for."""
    asked: list[str] = []

    def paths(host: str) -> PathList:
        asked.append(host)
        return PATHS

    return SteeringFactory(nic, paths, random.Random(1)), asked


def steered(number: int = 1, algorithm: str = "", dst: int = 2) -> FlowSpec:
    return structs.replace(flow(number, 1000, dst=dst), steering=algorithm)


@pytest.mark.parametrize(("algorithm", "kind"), [("scout", Scout), ("spray", Spray), ("ops", Ops)])
def test_a_flow_is_steered_as_its_nic_says(algorithm, kind):
    """The endpoint table is asked for its destination."""
    factory, asked = steerings(config(algorithm))
    assert type(factory.start(0, steered(), 7)) is kind
    assert ["10.0.0.2"] == asked


def test_a_flow_may_have_an_algorithm_of_its_own():
    """Also where the NIC has none."""
    for algorithm in ("scout", None):
        factory, _ = steerings(config(algorithm))
        assert type(factory.start(0, steered(1, "ecmp"), 7)) is FlowEcmp
        assert "ecmp" == factory.algorithm(steered(1, "ecmp"))


def test_no_algorithm_no_steering():
    """And nothing is asked."""
    factory, asked = steerings(config(None))
    assert factory.start(0, steered(), 7) is None
    assert "" == factory.algorithm(steered())
    assert not asked


def start(factory: SteeringFactory, now_ns: int, flow: FlowSpec) -> Spritz:
    steering = factory.start(now_ns, flow, 7)
    assert isinstance(steering, Spritz)
    return steering


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_the_next_flow_to_a_host_goes_on_where_the_last_one_ended(algorithm):
    """If it starts within keep_ns; its counters begin at 0, and so does its share of marks."""
    factory, asked = steerings(config(algorithm, keep_ns=50))
    first = start(factory, 0, steered())
    first.on_feedback(0, ACK, 502)
    first.on_feedback(0, ACK_ECN, 501)
    first.on_feedback(0, TIMEOUT, 501)
    first.next_ev(0)
    first.on_feedback(0, ACK, 502)
    factory.finish(10, steered(), first)
    assert start(factory, 20, steered(2, dst=3)).state is not first.state
    again = start(factory, 60, steered(3))
    assert again.state is first.state
    assert again.w.is_zero(1)
    assert 502 == again.next_ev(60)
    assert (0, 1, 0, 0.0) == (again.explored, again.reused, again.blocked, again.ecn_rate)
    factory.finish(70, steered(3), again)
    assert start(factory, 121, steered(5)).state is not first.state
    assert ["10.0.0.2", "10.0.0.3", "10.0.0.2"] == asked


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_concurrent_flows_to_a_host_share_what_they_know(algorithm):
    """As Alg. 1 to 3 have it; it is stale keep_ns after the last of them, not the first, has ended."""
    factory, asked = steerings(config(algorithm, keep_ns=50, timer_ns=10**9))
    first, second = start(factory, 0, steered(1)), start(factory, 5, steered(2))
    first.on_feedback(6, TIMEOUT, 501)
    first.on_feedback(6, ACK, 502)
    assert second.w.is_zero(1)
    assert 502 == second.next_ev(7)
    assert (1, 0) == (first.blocked, second.blocked)
    factory.finish(10, steered(1), first)
    assert start(factory, 100, steered(3)).w.is_zero(1)  # the second flow has not ended
    assert ["10.0.0.2"] == asked


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_good_paths_may_be_kept_for_less_time_than_blocked_ones(algorithm):
    """Blocked paths for keep_ns, good paths for good_ns."""
    for start_ns, good in ((20, [502]), (21, [])):
        factory, _ = steerings(config(algorithm, keep_ns=10**6, good_ns=10, timer_ns=10**9))
        first = start(factory, 0, steered())
        first.on_feedback(0, ACK, 502)
        first.on_feedback(0, TIMEOUT, 501)
        factory.finish(10, steered(), first)
        again = start(factory, start_ns, steered(2))
        assert good == again.buffer_paths
        assert again.w.is_zero(1)


@pytest.mark.parametrize("algorithm", ["scout", "spray"])
def test_small_flows_prefer_the_shortest_path(algorithm):
    """Below small_bytes it has the weight min_bias_factor, others 1; larger flows have those of the table."""
    factory, _ = steerings(config(algorithm, small_bytes=1001, min_bias_factor=100.0, keep_ns=50))
    small, large = steered(), structs.replace(steered(2), bytes=1001)
    drawn = [factory.start(0, each, 7) for each in (small, large)]
    shares = []
    for steering in drawn:
        assert steering is not None
        ports = [steering.next_ev(0) for _ in range(2000)]
        shares.append(ports.count(500) / len(ports))
    assert shares[0] == pytest.approx(100 / 102, abs=0.02)
    table = PATHS.weights[0] / sum(PATHS.weights)
    assert shares[1] == pytest.approx(table, abs=0.05)
    assert drawn[0] is not None
    factory.finish(10, small, drawn[0])
    assert isinstance(drawn[0], Spritz)
    assert start(factory, 20, large).state is not drawn[0].state
    assert start(factory, 20, small).state is drawn[0].state


def test_the_size_does_not_matter_to_other_algorithms():
    factory, _ = steerings(config("ops", small_bytes=10**9, min_bias_factor=100.0))
    ops = factory.start(0, steered(), 7)
    assert ops is not None
    assert 2000 * PATHS.weights[0] / sum(PATHS.weights) == pytest.approx(
        [ops.next_ev(0) for _ in range(2000)].count(500), abs=120
    )


def test_what_is_stale_is_forgotten():
    """So that a NIC with many peers does not fill the memory."""
    factory, asked = steerings(config(keep_ns=50))
    flows = [steered(number, dst=number) for number in (2, 3, 4)]
    kept = [start(factory, 0, each) for each in flows]
    for time_ns, each, steering in zip((0, 40, 80), flows, kept, strict=True):
        factory.finish(time_ns, each, steering)
    # at 80 the first was stale, so that it is not there even for one who comes back in time
    assert [False, True, True] == [
        start(factory, 50, each).state is steering.state for each, steering in zip(flows, kept, strict=True)
    ]
    assert 4 == len(asked)


@pytest.mark.parametrize(("algorithm", "keep_ns"), [("scout", 0), ("ops", 50), ("ecmp", 50), ("flicr", 50)])
def test_otherwise_every_flow_begins_anew(algorithm, keep_ns):
    """Without keep_ns, and where there is nothing to be learnt."""
    factory, asked = steerings(config(algorithm, keep_ns=keep_ns))
    first = factory.start(0, steered(), 7)
    assert first is not None
    factory.finish(0, steered(), first)
    assert factory.start(0, steered(2), 7) is not first
    assert 2 == len(asked)


def test_a_flow_that_cannot_be_steered_is_refused():
    """When it is added: no paths, or a transport that does not tell of packets."""
    nic = make_nic(1, config())
    with pytest.raises(ConfigError, match="flow 1: steering scout needs paths, but its NIC has none"):
        nic.add_flow(steered())
    nic = make_nic(1, NicConfig(transport="sr"), paths=lambda host: PATHS)
    with pytest.raises(ConfigError, match="flow 1: steering ecmp needs transport dctcp, not sr"):
        nic.add_flow(steered(1, "ecmp"))
    nic.add_flow(steered())
    with pytest.raises(
        ConfigError, match="flow 1: steering is 'best', expected scout, spray, ops, ecmp, flicr"
    ):
        steered(1, "best")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"evs": ()}, "it is empty"),
        ({"evs": (1, 2)}, "2 EVs, 3 latencies and 3 weights, expected the same number of each"),
        ({"weights": (1.0,)}, "3 EVs, 3 latencies and 1 weights"),
        ({"evs": (1, 0, 2)}, r"EV 0, expected 1\.\.65535"),
        ({"evs": (1, 65536, 2)}, r"EV 65536, expected 1\.\.65535"),
        ({"evs": (1, 7, 7)}, "EV 7 is given twice"),
        ({"latencies_ps": (1, -2, 3)}, "latency -2 ps, expected 0 or more"),
        ({"weights": (1.0, -1.0, 0.0)}, "weight -1.0, expected 0 or more"),
        ({"weights": (1.0, float("inf"), 0.0)}, "weight inf, expected 0 or more"),
        ({"weights": (1.0, float("nan"), 0.0)}, "weight nan, expected 0 or more"),
        ({"weights": (0.0, 0.0, 0.0)}, "all weights are 0"),
        ({"vlans": (1,)}, "1 VLAN IDs for 3 EVs"),
        ({"vlans": (1, 4096, 2)}, r"VLAN IDs \[1, 2, 4096\], expected 0\.\.4095"),
    ],
)
def test_path_lists_that_make_no_sense_are_refused(changes, message):
    """With the reason."""
    with pytest.raises(ConfigError, match=f"path list: {message}"):
        dataclasses.replace(PATHS, **changes)
