# SPDX-License-Identifier: Apache-2.0
"""Flowcut keeps order in Dragonflies: all variants, slow links, losses, small tables, links that fail; and the check sees
that UGAL-L for each packet does not.
"""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tailrace.hosts.nic.nic import Nic
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import parse_topology
from tests.flowcut.fabric import build
from tests.flowcut.frames import ROCE, UDP
from tests.flowcut.order import OrderCheck
from tests.flowcut.run import Run
from tests.flowcut.scenario import Scenario
from tests.flowcut.sources import Packet, Script, attach
from tests.flowcut.test_real_nics import Hosts, attach_nics, roce_data

TOPOLOGIES = (
    "dragonfly:p=2,a=3,h=1,rate=1Gbps,delay=1us",
    "dragonfly:p=2,a=2,h=2,groups=3,rate=1Gbps,delay=1us",
    "dragonfly:p=1,a=2,h=3,groups=4,rate=1Gbps,delay=1us",
    "dragonfly:p=3,a=1,h=3,rate=1Gbps,delay=1us",
)
_SHARES = st.sampled_from([0.0, 0.0, 0.002, 0.02, 0.1])
_SETTINGS = settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def scenarios(draw: st.DrawFn, *, flaps: bool = False) -> Scenario:
    """Any scenario in a Dragonfly; with `flaps` some links fail and come back."""
    options = {
        "variant": draw(st.sampled_from(("full",) if flaps else ("full", "ingress"))),
        "buckets": draw(st.sampled_from([1, 2, 8, 1024])),
        "queue": draw(st.sampled_from(["4KB", "20KB", "200KB"])),
        "rtt": draw(st.sampled_from([1.1, 2, 4])),
        "growth": draw(st.sampled_from(["off", "0.1"])),
        "left": draw(st.sampled_from([0, 5])),
        "first": draw(st.sampled_from(["ecmp", "least-loaded"])),
        "path": draw(st.sampled_from(["ugal-l", "ugal-l", "valiant", "mixed", "minimal"])),
        "seed": draw(st.integers(0, 3)),
    }
    return Scenario(
        draw(st.sampled_from(TOPOLOGIES)),
        draw(st.integers(0, 2**32)),
        "flowcut:" + ",".join(f"{key}={value}" for key, value in options.items()),
        draw(st.integers(1, 40)),
        slow_links=draw(st.integers(0, 3)),
        data_loss=draw(_SHARES),
        ack_loss=draw(_SHARES),
        pause_loss=draw(st.sampled_from([0.0, 0.0, 0.5])),
        flaps=draw(st.integers(1, 2)) if flaps else 0,
        obeys=draw(st.booleans()),
    )


def check(scenario: Scenario) -> None:
    """Nothing overtakes; what is counted in the end was lost, and is gone after its age."""
    with Run(scenario) as run:
        assert run.go(dumps=False)
        assert run.order.overtaken() == []
        if run.order.delivered() and not scenario.loses:
            assert run.leftovers() == []
        for _ in range(2):  # where the controller last heard that a link is down, paths and ages are longer
            run.pass_the_age()
        run.leftovers(sweep=True)
        assert run.leftovers() == []


@given(scenarios())
@_SETTINGS
def test_nothing_overtakes(scenario: Scenario) -> None:
    check(scenario)


RETURNING = Scenario(
    TOPOLOGIES[0],
    521691,
    "flowcut:variant=full,buckets=1,queue=4KB,rtt=1.1,growth=off,left=0,first=ecmp,path=ugal-l,seed=0",
    32,
    slow_links=1,
    flaps=2,
)
"""After a link has failed, a detour returns to the source's switch, which then has the flow twice."""


@given(scenarios(flaps=True))
@example(RETURNING)
@_SETTINGS
def test_nothing_overtakes_while_links_fail(scenario: Scenario) -> None:
    check(scenario)


@given(
    st.sampled_from(TOPOLOGIES),
    st.integers(0, 2**32),
    st.sampled_from(["mixed", "mixed,share=0", "ugal-l", "valiant", "minimal"]),
    st.sampled_from(["gbn", "sr"]),
    st.sampled_from([0.0, 0.01]),
)
@_SETTINGS
def test_nothing_overtakes_with_flowcut_in_nics(
    topology: str, seed: int, path: str, transport: str, loss: float
) -> None:
    """And every flow completes."""
    words = f"flowcut:variant=nic,rtt=1.1,left=0,path={path},queue=200KB"
    scenario = Scenario(topology, seed, words, 20, slow_links=2, data_loss=loss)
    hosts = Hosts(transport=transport, window_bytes=8_000, virtual_payload=True, most_bytes=30_000)
    nics: list[Nic] = []
    with Run(scenario, functools.partial(attach_nics, hosts, nics), roce_data) as run:
        assert run.go(dumps=False)
        assert all(record.end_ns is not None for record in Nic.merge(*nics))
        assert run.order.overtaken() == []


def bursts(scheme: str) -> OrderCheck:
    """All hosts of two groups send to the other group in bursts, so that queues differ and paths change."""
    topology = parse_topology("dragonfly:p=3,a=2,h=2,groups=4,rate=1Gbps,delay=1us")
    rng = random.Random(5)
    near = [host for host in topology.hosts if topology.switch(host.switch).group == 0]
    far = [host for host in topology.hosts if topology.switch(host.switch).group == 1]
    scripts = []
    for number in range(24):
        src, dst = rng.choice(near), rng.choice(far)
        packets = tuple(Packet(30_000 if index % 6 == 0 else 0, 900) for index in range(60))
        scripts.append(Script(src.name, dst.name, 1000 + number, ROCE, UDP, number * 211, packets, 10**6))
    with build(topology, parse_scheme(scheme), 1) as network:
        attach(network, scripts)
        check = OrderCheck(network)
        assert network.run()
        assert check.delivered()
        return check


@pytest.mark.parametrize("scheme", ["ugal-l:queue=1MB", "valiant:queue=1MB", "letflow:gap=1us,queue=1MB"])
def test_the_check_sees_packets_and_short_flowlets_overtake(scheme: str) -> None:
    assert len(bursts(scheme).overtaken()) > 5


@pytest.mark.parametrize(
    "scheme",
    [
        "minimal:queue=1MB",
        "valiant:per=flow,queue=1MB",
        "letflow:gap=1s,queue=1MB",
        "flowcut:rtt=1.5,left=0,queue=1MB",
        "flowcut:variant=ingress,buckets=1,rtt=1.5,left=0,queue=1MB",
    ],
)
def test_flowcut_and_what_never_moves_a_flow_keep_the_order_there(scheme: str) -> None:
    assert bursts(scheme).overtaken() == []
