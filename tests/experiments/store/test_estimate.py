# SPDX-License-Identifier: Apache-2.0
"""What runs will cost, reckoned from runs whose cost is made up."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.results.result import Result
from tailrace.experiments.run.machine import machine
from tailrace.experiments.run.task import Task, make_task, run_task, words_of
from tailrace.experiments.run.task import run_id as name_of
from tailrace.experiments.store import estimate
from tailrace.experiments.store.estimate import RECKONED, SAME, SEED, UNKNOWN, Estimator
from tailrace.experiments.store.record import Record, record_of
from tailrace.experiments.workloads.workload import Traffic, Workload
from tailrace.topology import Topology

MIB = 1 << 20
HOP_S = 2e-6


def task(scheme: str = "ecmp", hosts: int = 2, size: str = "16KiB", seed: int = 1) -> Task:
    words = {
        "scheme": scheme,
        "topology": f"leaf-spine:leaves=2,spines=2,hosts={hosts}",
        "workload": f"permutation:size={size}",
        "target": "virtual",
        "seed": seed,
    }
    return make_task(make(words), "virtual", label="it", out=Path("it"))


@pytest.fixture(scope="module")
def pattern() -> tuple[Task, Result]:
    one = task()
    return one, run_task(one)


def took(pattern: tuple[Task, Result], one: Task, *, hops: int, where: str = "", **more) -> Record:
    """A run that took HOP_S a hop and as long besides, and 100 MiB."""
    traffic_s = hops * HOP_S
    words = words_of(one.experiment)
    summary = msgspec.structs.replace(
        pattern[1].summary,
        scheme=one.experiment.scheme,
        topology=one.experiment.topology,
        workload=one.experiment.workload or "",
        seed=one.experiment.seed,
        packet_hops=hops,
        wall_s=8 * traffic_s,
        traffic_s=4 * traffic_s,
        cpu_s=2 * traffic_s,
        memory_bytes=100 * MIB,
        machine=where or machine(),
        **more,
    )
    return msgspec.structs.replace(record_of(*pattern), words=words, run=name_of(words, {}), summary=summary)


def test_nothing_is_known_without_runs() -> None:
    cost = Estimator([]).cost(task())
    assert (cost.cpu_s, cost.memory_bytes, cost.how) == (0, 0, UNKNOWN)


def test_the_same_words_and_other_seeds(pattern: tuple[Task, Result]) -> None:
    """What they took, and the mean of what they took."""
    runs = [took(pattern, task(seed=seed), hops=1000 * seed) for seed in (1, 2)]
    estimator = Estimator(runs)
    same, other = estimator.cost(task(seed=2)), estimator.cost(task(seed=3))
    assert (same.how, other.how) == (SAME, SEED)
    assert same.cpu_s == pytest.approx(2 * 2000 * HOP_S)
    assert other.cpu_s == pytest.approx(2 * 1500 * HOP_S)
    assert same.memory_bytes == other.memory_bytes == 100 * MIB


def test_larger_runs_are_reckoned_by_packets(pattern: tuple[Task, Result]) -> None:
    """Four times the bytes are four times the hops; set-up follows the network, which is the same."""
    estimator = Estimator([took(pattern, task(), hops=4000)])
    cost = estimator.cost(task(size="64KiB"))
    assert cost.how == RECKONED
    assert cost.cpu_s == pytest.approx(4 * 4000 * HOP_S + 4000 * HOP_S)
    assert cost.memory_bytes == 100 * MIB
    more_hosts = estimator.cost(task(hosts=4))
    assert more_hosts.cpu_s == pytest.approx(2 * 4000 * HOP_S + 4000 * HOP_S)


def test_a_run_goes_by_those_most_like_it(pattern: tuple[Task, Result]) -> None:
    """Those of the same scheme come first, but not if they are far larger or smaller."""
    others = [took(pattern, task("spray", seed=seed), hops=9000) for seed in range(3)]
    own = [took(pattern, task("ecmp", seed=seed), hops=4000) for seed in range(3)]
    found = Estimator([*others, *own]).cost(task("ecmp", size="24KiB")).cpu_s
    # half as many packets again; all networks are one, so set-up is that of all
    assert found == pytest.approx(6000 * HOP_S + 6500 * HOP_S)
    large = [took(pattern, task("ecmp", size="4MiB", seed=seed), hops=100_000) for seed in range(3)]
    found = Estimator([*others, *large]).cost(task("ecmp", size="32KiB")).cpu_s
    assert found == pytest.approx(2 * 9000 * HOP_S + (9000 + 100_000) / 2 * HOP_S)


def test_flows_are_drawn_where_something_is_reckoned(
    pattern: tuple[Task, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then no more than a run has that others are like; a run with more of them is left out."""
    drawn: list[str] = []

    def traffic(self: Workload, topology: Topology, rng: random.Random) -> Traffic:
        drawn.append(self.name)
        return draw(self, topology, rng)

    draw = Workload.traffic
    monkeypatch.setattr(Workload, "traffic", traffic)
    estimate._packets.cache_clear()
    estimate._packets_of_run.cache_clear()
    one = took(pattern, task(), hops=4000)
    estimator = Estimator([one])
    assert [estimator.cost(task(seed=seed)).how for seed in (1, 2)] == [SAME, SEED]
    assert drawn == []
    assert estimator.cost(task(size="64KiB")).how == RECKONED
    assert drawn == ["permutation"] * 2
    alone = estimator.cost(task(size="64KiB"))
    monkeypatch.setattr(estimate, "_MOST_FLOWS", 10)
    words = {"workload": "permutation:size=64KiB,flows=11"}
    large = msgspec.structs.replace(one, summary=msgspec.structs.replace(one.summary, **words))
    assert Estimator([one, large]).cost(task(size="64KiB")) == alone


def test_times_of_another_machine_do_not_count_beside_those_of_this(pattern: tuple[Task, Result]) -> None:
    """They are better than none."""
    there = took(pattern, task(), hops=1_000_000, where="a slow one, 1 cores")
    here = took(pattern, task(seed=2), hops=4000)
    assert Estimator([there, here]).machine == machine()
    assert Estimator([there, here]).cost(task()).cpu_s == pytest.approx(2 * 4000 * HOP_S)
    alone = Estimator([there])
    assert alone.machine == "a slow one, 1 cores"
    assert alone.cost(task()).how == SAME


def test_a_workload_that_is_not_known_here_is_left_out(pattern: tuple[Task, Result]) -> None:
    """Lines may be of a plug-in that is not loaded."""
    summary = took(pattern, task(), hops=4000).summary
    foreign = msgspec.structs.replace(
        took(pattern, task(), hops=4000), summary=msgspec.structs.replace(summary, workload="theirs:x=1")
    )
    assert Estimator([foreign]).cost(task()).how == UNKNOWN
