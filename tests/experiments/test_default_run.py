# SPDX-License-Identifier: Apache-2.0
"""What `make run` shows by default, observed in virtual time: ECMP's collisions, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run
from tests.codec.frames import Data, parse

BASIC = read_experiment(Path("basic"))
[SLOW_LINK] = BASIC.faults

Uplinks = dict[str, set[int]]


def uplinks_of(network: Network, seen: Uplinks) -> None:
    """Notes which flows' data packets each link from a leaf to a spine carries."""
    leaves = set(network.topology.leaves)

    def tap(wire: Wire, event: WireEvent, _now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.SENT and wire.source.node in leaves and not wire.target.node.startswith("h"):
            packet = parse(frame, virtual_bytes)
            if isinstance(packet, Data):
                seen[f"{wire.source.node}-{wire.target.node}"].add(packet.qpn)

    network.tap(tap)


def default_run(scheme: str, fault: str | None = None) -> tuple[Result, Uplinks]:
    words = {
        "scheme": scheme,
        "topology": defaults.TOPOLOGY,
        "seed": defaults.SEED,
    }
    planned = plan(make({**words, "fault": [] if fault is None else [fault]}), "virtual")
    seen: Uplinks = defaultdict(set)
    backend = VirtualBackend(lambda network: uplinks_of(network, seen))
    return run(planned, backend, lambda _progress: None, label=scheme), seen


@pytest.fixture(scope="module")
def ecmp() -> tuple[Result, Uplinks]:
    return default_run("ecmp")


def test_flows_collide_under_ecmp(ecmp: tuple[Result, Uplinks]) -> None:
    """At each leaf two flows share an uplink while another stays idle, and every flow keeps to one uplink."""
    result, seen = ecmp
    uplinks = [f"leaf{leaf}-spine{spine}" for leaf in (1, 2) for spine in (1, 2, 3, 4)]
    assert sum(len(flows) for flows in seen.values()) == len(result.rows) == 8
    for leaf in (uplinks[:4], uplinks[4:]):
        shares = [len(seen.get(uplink, ())) for uplink in leaf]
        assert max(shares) >= 2
        assert min(shares) == 0
        assert sum(shares) == 4


def test_the_link_that_is_slowed_carries_a_flow(ecmp: tuple[Result, Uplinks]) -> None:
    """Otherwise the fault would change nothing."""
    name = SLOW_LINK.partition("link=")[2].partition(",")[0]
    assert ecmp[1][name]


def test_collisions_cost_what_they_must(ecmp: tuple[Result, Uplinks]) -> None:
    """Two flows on one link of their own rate take about twice as long as alone."""
    slowdowns = sorted(row.slowdown or 0 for row in ecmp[0].rows)
    assert slowdowns[0] < 1.2
    assert 1.8 < slowdowns[-1] < 2.3


@pytest.mark.parametrize("fault", [None, SLOW_LINK])
def test_flowcut_beats_ecmp_in_order(fault: str | None) -> None:
    """Flowcut's slowest flow is faster than ECMP's, clean and with the slow link, and no packet is out of order."""
    ecmp, _ = default_run("ecmp", fault)
    flowcut, _ = default_run("flowcut", fault)
    assert ecmp.complete
    assert flowcut.complete
    assert flowcut.summary.packets.out_of_order == flowcut.summary.packets.retransmitted == 0
    assert flowcut.p99_ns is not None
    assert ecmp.p99_ns is not None
    assert flowcut.p99_ns < ecmp.p99_ns
