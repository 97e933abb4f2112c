# SPDX-License-Identifier: Apache-2.0
"""The controller of real time in virtual time: it finds out by itself what happens, and mends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tailrace.controller.reconcile import differences
from tailrace.controller.session import DEFAULT_ELECTION_ID, SessionState
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.p4rt import programs
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.inprocess import InProcess
from tailrace.results.result import Result
from tailrace.schemes.intent import intent
from tailrace.sim.job import Job, RealControllerConfig
from tailrace.sim.network import Network
from tailrace.sim.outcome import Progress
from tailrace.sim.real_controller import RealController
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.spec.schema import KeyProblemError
from tailrace.study.task import run

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
SCHEMES = ("ecmp", "flowcut:variant=full", "rlb:variant=hermes", "spray")


END_NS = 800_000
"""Long after everything is mended, and before the flows have ended: one alone takes 950 µs."""


@dataclass
class Seen:
    """Of one run: its result, when each event was told, and what the network was like: whether all frames are
    accounted for, and how much of what its switches held at END_NS was not as without faults.
    """

    result: Result = field(init=False)
    times_ns: dict[str, int] = field(default_factory=dict)
    balanced: bool = False
    differences: int = -1


def measure(**words: Any) -> Seen:
    """Runs a permutation with the live controller."""
    values = {"scheme": "ecmp", "topology": TOPOLOGY, "workload": "permutation:size=1MiB", **words}
    planned = plan(make({"controller": "real", **values}), "virtual")
    seen = Seen()
    networks: list[Network] = []

    def observe(network: Network) -> None:
        networks.append(network)
        network.call_at(END_NS, look)

    def look() -> None:
        seen.balanced = networks[0].account().balanced
        seen.differences = wrong(networks[0], planned.job)

    def report(progress: Progress) -> None:
        if progress.note:
            seen.times_ns[progress.note] = networks[0].now_ns

    seen.result = run(planned, VirtualBackend(observe), report, label="it")
    return seen


def wrong(network: Network, job: Job) -> int:
    """How many entries of all switches differ from what is intended while no link is dead."""
    differing = 0
    for name, wanted in intent(job.topology, job.scheme, job.switches).items():
        switch, program = InProcess(network.p4rt(name)), programs.load(wanted.program)
        differing += len(run_at_once(differences(switch, program, wanted.entities)))
    return differing


def kinds(result: Result) -> list[str]:
    return [event.kind for event in result.events]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_quiet_network(scheme: str) -> None:
    """Every switch is found as it should be, nothing is written, and no link is doubted."""
    seen = measure(scheme=scheme)
    assert kinds(seen.result) == ["switch-ready"] * 4
    assert all("(program was there, 0 updates)" in event.text for event in seen.result.events)
    assert seen.result.complete
    assert (seen.balanced, seen.differences) == (True, 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_link_that_dies_and_comes_back(scheme: str) -> None:
    """It is noticed by missing probes, in about the time that `told` takes; routes are as before in the end."""
    seen = measure(scheme=scheme, fault=["link-down:link=leaf1-spine1,at=100us,until=400us"])
    assert kinds(seen.result) == ["switch-ready"] * 4 + ["link-down", "link-up"]
    assert (seen.result.complete, seen.balanced, seen.differences) == (True, True, 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_switch_that_restarts(scheme: str) -> None:
    """Its sessions break, its links die; when it is back it gets its program and its entries."""
    seen = measure(scheme=scheme, fault=["switch-restart:switch=spine1,at=200us,for=200us"])
    event_kinds = kinds(seen.result)
    assert event_kinds[:5] == ["switch-ready"] * 4 + ["switch-lost"]
    assert sorted(event_kinds[5:]) == sorted(["switch-ready", *["link-down"] * 2, *["link-up"] * 2])
    [back] = [event for event in seen.result.events[5:] if event.kind == "switch-ready"]
    assert "program pushed" in back.text
    assert (seen.result.complete, seen.balanced, seen.differences) == (True, True, 0)


def test_a_seed_repeats_a_run() -> None:
    """Packets and events, though hundreds of messages had delays of their own; another seed has others."""
    fault = ["link-down:link=leaf1-spine1,at=100us,until=400us"]
    first, again, other = (
        measure(fault=fault, seed=seed, workload="permutation:size=1MiB").result for seed in (1, 1, 2)
    )
    assert first.summary.trace_sha256 == again.summary.trace_sha256
    assert [event.text for event in first.events] == [event.text for event in again.events]
    assert first.summary.trace_sha256 != other.summary.trace_sha256


@pytest.mark.parametrize("interval_ns", [5_000, 20_000])
def test_when_it_is_noticed(interval_ns: int) -> None:
    """After three rounds without a probe, and within the round in which those under way still arrive."""
    live = f"real:interval={interval_ns}ns,latency=500ns"
    seen = measure(controller=live, fault=["link-down:link=leaf1-spine1,at=100us"])
    rounds = (seen.times_ns["leaf1-spine1: link down"] - 100_000) / interval_ns
    assert 3 <= rounds <= 5


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("alive", "expected one of ideal, real, found 'alive'"),
        ("real:delay=1us", "unknown key 'delay'"),
        ("real:latency=1ns", "latency must be at least 100"),
        ("ideal:latency=1us", "unknown key 'latency'"),
    ],
)
def test_words_that_are_wrong(words: str, problem: str) -> None:
    with pytest.raises(KeyProblemError, match=problem):
        make({"scheme": "ecmp", "controller": words})


def test_what_it_cannot_do() -> None:
    """In real time it is always real; and a run with the real controller has one rank."""
    experiment = make({"scheme": "ecmp", "controller": "real"})
    with pytest.raises(SpecError, match="controller: in real time it is always real"):
        plan(experiment, "native")
    job = plan(experiment, "virtual").job
    with pytest.raises(SpecError, match="controller: real: such a run must have one rank"):
        VirtualBackend(ranks=2).run(job, lambda _progress: None)


class Two(RealController):
    """Two controllers of one network; the connections of both with a switch break at a time."""

    broken = "leaf2"

    def start(self) -> None:
        self.second = self._make(DEFAULT_ELECTION_ID - 1)
        super().start()
        self._loop.run_ready(self._begin)
        cut = partial(self.memory.break_off, self.broken)
        self._network.call_at(BROKEN_NS, lambda: self._loop.run_ready(cut))

    def _begin(self) -> None:
        # kept, or it would be forgotten while it runs
        self._other = self._loop.create_task(self.second.run())


BROKEN_NS = 200_000


@pytest.mark.parametrize("broken", ["leaf1", "leaf2", "spine2"])
@pytest.mark.parametrize("seed", range(4))
def test_a_divided_network_is_joined_again(broken: str, seed: int) -> None:
    """Whoever is first after a break becomes primary of that switch, so two controllers may have a part each.
    Neither takes links to the other's part for dead, and in the end one of them has all.
    """
    made: list[Two] = []

    def control(network: Network, job: Job, happened: Any) -> Two:
        made.append(Two(network, job, RealControllerConfig(), happened))
        made[0].broken = broken
        return made[0]

    ends: list[tuple[set[SessionState], set[SessionState]]] = []

    def look() -> None:
        both = (made[0].controller, made[0].second)
        first, second = ({session.state for session in each.sessions.values()} for each in both)
        ends.append((first, second))

    values = {"scheme": "ecmp", "topology": TOPOLOGY, "workload": "permutation:size=1MiB", "seed": seed}
    backend = VirtualBackend(lambda network: network.call_at(END_NS, look), control=control)
    result = run(plan(make(values), "virtual"), backend, lambda _progress: None, label="it")
    assert "link-down" not in kinds(result)
    assert ends in (
        [({SessionState.READY}, {SessionState.BACKUP})],
        [({SessionState.BACKUP}, {SessionState.READY})],
    )
    assert result.complete
