# SPDX-License-Identifier: Apache-2.0
"""Ranks: what they say to each other arrives, and a network in several comes out as in one."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.sim.network import Network, NetworkError, fabric
from tailrace.sim.network.ranks import RankLostError, SharedMemory
from tailrace.topology import parse_topology
from tests.sim.network.l3 import Frame, ListNic, attach_all, network, packet
from tests.sim.network.random_runs import SPAN_NS, RandomRun, Seen, random_topology
from tests.sim.network.rank_threads import run_ranks

_SETTINGS = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
RING_BYTES = 1 << 18
"""tv_shared.c"""


# ---- messages ----


@settings(parent=_SETTINGS, max_examples=25)
@given(ranks=st.integers(1, 5), seed=st.integers(0, 2**32), rounds=st.integers(1, 4))
def test_every_message_arrives_whole(ranks: int, seed: int, rounds: int) -> None:
    """Of any length, none, and many times what a ring holds; one rank may be a round ahead of another."""

    def message(source: int, target: int, turn: int) -> bytes:
        rng = random.Random(f"{seed} {source} {target} {turn}")
        length = rng.choice((0, 1, 7, 4096, RING_BYTES - 8, RING_BYTES, RING_BYTES + 1, 3 * RING_BYTES))
        return rng.randbytes(length)

    def talk(transport: SharedMemory) -> list[list[bytes]]:
        rank = transport.rank
        return [
            transport.exchange([message(rank, target, turn) for target in range(ranks)])
            for turn in range(rounds)
        ]

    for target, heard in enumerate(run_ranks(ranks, talk)):
        assert heard == [[message(source, target, turn) for source in range(ranks)] for turn in range(rounds)]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_rank_that_goes_is_missed(gone: int) -> None:
    """By the first, and by all others when it is the first."""
    missed = []

    def talk(transport: SharedMemory) -> None:
        transport.exchange([b""] * 3)
        if transport.rank == gone:
            raise KeyError(gone)
        try:
            transport.exchange([b"more"] * 3)
        except RankLostError:
            missed.append(transport.rank)
            raise

    with pytest.raises(KeyError, match=str(gone)):
        run_ranks(3, talk)
    assert set(missed) == {0, 1, 2} - {gone}


def test_messages_are_for_all_ranks() -> None:
    with pytest.raises(ValueError, match="a message for each rank"):
        run_ranks(2, lambda transport: transport.exchange([b""]))
    with pytest.raises(TypeError, match="expected bytes"):
        run_ranks(1, lambda transport: transport.exchange(["text"]))  # type: ignore[list-item]


# ---- networks ----


def together(ranks: list[Seen]) -> Seen:
    """What all ranks have seen together; what each reports of the whole network must be equal."""
    first = ranks[0]
    parts: list[dict[str, Any]] = [
        {"arrived": seen.arrived, "drops": seen.drops, "events": seen.events} for seen in ranks
    ]
    for seen, part in zip(ranks, parts, strict=True):
        assert replace(first, **part) == seen
    arrived = {name: frames for seen in ranks for name, frames in seen.arrived.items()}
    return replace(first, arrived=arrived, drops=[], events=0)


@given(
    seed=st.integers(0, 2**32),
    faults=st.booleans(),
    pfc=st.booleans(),
    cuts=st.lists(st.integers(0, 2 * SPAN_NS), max_size=3),
    data=st.data(),
)
@_SETTINGS
def test_any_number_of_ranks_gives_the_same(
    seed: int, faults: bool, pfc: bool, cuts: list[int], data: st.DataObject
) -> None:
    """Frames, times, losses, samples, paths, accounts: of random networks, with faults and in pieces."""
    most = len(random_topology(random.Random(f"run {seed}")).switches)
    ranks = data.draw(st.integers(1, min(4, most)))
    make = partial(RandomRun, seed, faults=faults, pfc=pfc, instant=False)
    alone = make().go(cuts)
    drops = sorted(str(each) for each in alone.drops)
    several = run_ranks(ranks, lambda transport: make(transport=transport).go(cuts))
    assert sorted(str(each) for rank_run in several for each in rank_run.drops) == drops
    assert together(several) == replace(alone, drops=[], events=0)


def _three(net: Network) -> dict[str, ListNic]:
    """A few frames between hosts of two leaves, both ways."""
    nics = {host.name: ListNic() for host in net.hosts}
    for name, nic in nics.items():
        other = {"h1": "h3", "h3": "h1", "h2": "h4", "h4": "h2"}[name]
        nic.script = [(at, Frame(packet(net.topology, name, other, bytes([at])))) for at in range(0, 60, 7)]
        net.attach(name, nic)
    return nics


def test_one_instant_at_a_time() -> None:
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us")

    def trace(transport: SharedMemory, *, stepwise: bool) -> str:
        with network(topology, transport=transport, stepwise=stepwise) as net:
            _three(net)
            assert net.run()
            return net.trace_sha256

    assert (
        len({*run_ranks(2, partial(trace, stepwise=True)), *run_ranks(3, partial(trace, stepwise=False))})
        == 1
    )


def test_progress_is_told_at_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "PROGRESS_EVENTS", 5)
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us")

    def progress(transport: SharedMemory) -> list[int]:
        times: list[int] = []
        with network(topology, transport=transport) as net:
            _three(net)
            net.run(progress=lambda now_ns, _events: times.append(now_ns))
        return times

    first, second = run_ranks(2, progress)
    assert first == second != []


# ---- what ranks cannot do ----

SMALL = "leaf-spine:leaves=2,spines=1,hosts=1,rate=10Gbps,delay=1us"


def test_taps_want_one_rank() -> None:
    def tapped(transport: SharedMemory) -> None:
        with network(parse_topology(SMALL), transport=transport) as net:
            net.tap(lambda *_arguments: None)

    with pytest.raises(NetworkError, match=r"^a tap needs the whole network: run it with one rank$"):
        run_ranks(2, tapped)


def test_links_between_ranks_take_time() -> None:
    """Whole parts of a network would have to be run at one instant."""

    def run(transport: SharedMemory) -> None:
        with network(parse_topology(SMALL), transport=transport) as net:
            attach_all_here(net)
            for switch in net.switches:
                for port in net.topology.ports_of(switch.name):
                    net.switch(switch.name).port_config(port, rate_bps=0, delay_ns=0)
            net.run(10)

    with pytest.raises(NetworkError, match=r"^a link between two ranks has no delay: run it with one rank$"):
        run_ranks(2, run)


def attach_all_here(net: Network) -> None:
    for host in net.hosts:
        net.attach(host.name, ListNic())


def test_hosts_of_another_rank_are_not_here() -> None:
    def attach(transport: SharedMemory) -> None:
        with network(parse_topology(SMALL), transport=transport) as net:
            attach_all(net)

    with pytest.raises(NetworkError, match=r"^h[12] is in another rank$"):
        run_ranks(2, attach)
