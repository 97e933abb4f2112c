# SPDX-License-Identifier: Apache-2.0
"""Flowcut's order in a network of hundreds of hosts while everything fails at random, by what the NICs count.

The receivers count packets that arrive after a later one of their flow (FlowRecord.overtaken). Links slow down, die
and come back, data and ACKs are lost, a switch swallows packets. In the full variant the controller reroutes around
dead links. Where a switch keeps no state that moves flows that are in flight, which is outside the guarantee
(docs/schemes/flowcut.md); so in the other variants the controller is not informed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.sim.network import Network
from tailrace.sim.outcome import Outcome
from tailrace.sim.run import VirtualBackend
from tailrace.topology import parse_topology
from tests.long import more

TOPOLOGY = "fat-tree:k=8,hosts=8,rate=100Gbps,delay=500ns"
"""256 hosts and 80 switches, with half the capacity above the edge, so that flows meet."""

HOSTS = 256
WORDS = {"topology": TOPOLOGY, "workload": "permutation:size=512KiB", "mtu": "2KiB", "window": "64KiB"}
SCHEME = "flowcut:variant={variant},rtt=2,left=0"
"""As ready to move as it gets: a mild threshold, and drains up to the last packet of a flow."""

FAULTS_NS = 400_000
"""Faults begin and end at random in this time; flows alone would take an eighth of it."""


@dataclass(frozen=True)
class Faults:
    """Words for an experiment, and links that die and come back without the controller's knowledge."""

    words: tuple[str, ...]
    unnoticed: tuple[tuple[str, str, int, int], ...]


def times(rng: random.Random) -> tuple[int, int]:
    at_ns, until_ns = sorted(rng.sample(range(FAULTS_NS), 2))
    return at_ns, until_ns


def draw(seed: int, *, rerouted: bool) -> Faults:
    """Faults of every kind; `rerouted`: the controller acts on dead links."""
    rng = random.Random(f"faults {seed}")
    words = [
        f"link-slow:fraction={rng.uniform(0.02, 0.2):.3f},factor={rng.uniform(0.1, 0.5):.2f}",
        f"link-slow:fraction=0.1,factor={rng.uniform(0.1, 0.5):.2f}",
        f"drop:rate={rng.choice([0.0001, 0.001])}",
        f"ack-loss:rate={rng.choice([0.001, 0.01, 0.1])}",
        f"blackhole:pairs={rng.uniform(0.1, 0.5):.2f},where={rng.choice(['edge', 'agg', 'core'])}",
    ]
    links = [(link.a, link.b) for link in rng.sample(parse_topology(TOPOLOGY).links, 5)]
    dead = [(a, b, *times(rng)) for a, b in links]
    if rerouted:
        words += [f"link-down:link={a}-{b}" for a, b, _, _ in dead[:1]]
    timed = []
    for text in words:
        at_ns, until_ns = times(rng)
        timed.append(f"{text},at={at_ns}ns,until={until_ns}ns")
    return Faults(tuple(timed), tuple(dead[1:]))


def outcome_of(scheme: str, faults: Faults, seed: int, **changes: str) -> Outcome:
    def look(network: Network) -> None:
        for a, b, at_ns, until_ns in faults.unnoticed:
            network.link_down(a, b, at_ns)
            network.link_up(a, b, until_ns)

    values = {
        **WORDS,
        "scheme": scheme,
        "fault": list(faults.words),
        "seed": seed,
        "target": "virtual",
        **changes,
    }
    return VirtualBackend(look).run(plan(make(values), "virtual").job, lambda _progress: None)


def total(outcomes: Sequence[Outcome], count: str) -> int:
    """A count of all flows together."""
    return sum(getattr(record, count) for outcome in outcomes for record in outcome.records)


@pytest.mark.parametrize("variant", ["full", *more("ingress", "nic")])
def test_nothing_overtakes_at_scale(variant: str) -> None:
    """All flows complete, and none of their packets is overtaken, however paths change."""
    scheme = SCHEME.format(variant=variant)
    outcomes = [outcome_of(scheme, draw(seed, rerouted=variant == "full"), seed) for seed in (1, 2)]
    for outcome in outcomes:
        assert [record.id for record in outcome.records if record.end_ns is None] == []
        assert len(outcome.records) == HOSTS
        assert [record for record in outcome.records if record.overtaken] == []
    assert total(outcomes, "drains") > HOSTS and total(outcomes, "path_changes") > HOSTS
    assert total(outcomes, "retransmitted") > HOSTS


def test_the_count_sees_packets_that_overtake() -> None:
    """Sprayed packets do, in the same network, without any fault but slow links."""
    slow = Faults(draw(1, rerouted=False).words[:1], ())
    outcome = outcome_of("spray", slow, 1, workload="permutation:size=64KiB", transport="sr")
    assert total([outcome], "overtaken") > HOSTS
