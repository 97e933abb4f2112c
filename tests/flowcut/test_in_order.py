# SPDX-License-Identifier: Apache-2.0
"""The order of flows where the model does not follow: failing links and rerouting, early resume, other schemes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from tailrace.schemes.registry import parse_scheme
from tailrace.topology import Topology, parse_topology
from tests.flowcut.fabric import build
from tests.flowcut.frames import ROCE, UDP
from tests.flowcut.order import OrderCheck
from tests.flowcut.run import Run
from tests.flowcut.scenario import Scenario, scenarios
from tests.flowcut.sources import Packet, Script, attach

_SETTINGS = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
_RESUME_BYTES = 3000


@given(scenarios(flaps=True, losses=True))
@_SETTINGS
def test_nothing_overtakes_while_links_fail_and_the_controller_reroutes(scenario: Scenario) -> None:
    with Run(scenario) as run:
        assert run.go(dumps=False)
        assert run.order.overtaken() == []
        run.pass_the_age()
        run.leftovers(sweep=True)
        assert run.leftovers() == []


@given(scenarios(resume=f"{_RESUME_BYTES}B"))
@_SETTINGS
def test_early_resume_lets_no_more_bytes_be_overtaken_than_it_allows(scenario: Scenario) -> None:
    """Flowcut §IV-C. All else is as ever: the model follows, and every entry goes by itself."""
    with Run(scenario) as run:
        assert run.go()
        assert run.order.displaced_bytes() <= _RESUME_BYTES
        run.compare_with_model()


def unequal(delay_ns: int = 100_000) -> Topology:
    """Two paths from leaf to leaf, one of them much longer than the other."""
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=1Gbps,delay=1us")
    links = tuple(
        replace(link, delay_ns=delay_ns) if "spine2" in (link.a, link.b) else link for link in topology.links
    )
    return replace(topology, links=links)


def bursts(scheme: str) -> OrderCheck:
    """Twenty flows of bursts with pauses of 20 us, over the unequal paths."""
    with build(unequal(), parse_scheme(scheme)) as network:
        packets = tuple(Packet(20_000 if number % 4 == 0 else 0, 500) for number in range(60))
        attach(
            network,
            [
                Script("h1", "h3", 1000 + number, ROCE, UDP, number * 137, packets, 10**6)
                for number in range(20)
            ],
        )
        check = OrderCheck(network)
        assert network.run()
        assert check.delivered()
        return check


@pytest.mark.parametrize("scheme", ["letflow:gap=10us,queue=1MB", "spray:queue=1MB"])
def test_the_check_sees_flowlets_with_too_small_a_gap_and_sprayed_packets(scheme: str) -> None:
    """The paths differ by 198 us, more than a pause between bursts."""
    check = bursts(scheme)
    assert len(check.overtaken()) > 5
    assert check.displaced_bytes() >= 500


@pytest.mark.parametrize(
    "scheme",
    [
        "letflow:gap=1s,queue=1MB",
        "ecmp:queue=1MB",
        "flowcut:variant=full,rtt=1.5,left=0,queue=1MB",
        "flowcut:variant=ingress,buckets=1,rtt=1.5,left=0,queue=1MB",
    ],
)
def test_flowcut_and_schemes_that_never_move_a_flow_keep_the_order_there(scheme: str) -> None:
    check = bursts(scheme)
    assert check.overtaken() == []
    assert check.displaced_bytes() == 0


def test_early_resume_does_overtake_within_its_bound() -> None:
    check = bursts(f"flowcut:variant=ingress,rtt=1.1,left=0,growth=off,queue=1MB,resume={_RESUME_BYTES}B")
    assert 0 < check.displaced_bytes() <= _RESUME_BYTES
