# SPDX-License-Identifier: Apache-2.0
"""Simulated disasters: a seed repeats, what is broken is found, what fails is made smaller."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from checks.soak import __main__ as command
from checks.soak import run as soak_run
from checks.soak.control import DisturbedController
from checks.soak.generate import draw
from checks.soak.run import ScenarioResult, run
from checks.soak.scenario import Break, Chaos, Full, Kill, Scenario
from checks.soak.shrink import SMALLEST, shrink
from tailrace.controller.timing import Timing
from tailrace.p4rt.events import Event
from tailrace.sim.job import Job
from tailrace.sim.network import Network
from tailrace.sim.network.loop import VirtualLoop
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run as run_plan
from tailrace.topology import parse_topology

SMALL = {
    "scheme": "ecmp",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "workload": "permutation:size=32KiB",
}


def test_a_seed_is_always_the_same_scenario() -> None:
    """And each can be planned; written and read again it is the same."""
    for seed in range(200):
        scenario = draw(seed)
        assert scenario == draw(seed)
        assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario).plan().job.flows
    assert len({msgspec.json.encode(replace(draw(seed), seed=0)) for seed in range(200)}) == 200


@pytest.mark.parametrize("seed", [45, 2, 3, 2582])
def test_a_seed_repeats_a_run(seed: int) -> None:
    """45: a timer of the loop that was a nanosecond away stopped time. 2582: packets went down and up again where switches
    disagreed on a link, and came out of order.
    """
    first = run(draw(seed))
    assert first.problems == []
    assert first.trace
    assert run(draw(seed)) == first


def test_a_seed_is_the_same_run_in_every_process() -> None:
    """Names and objects have other hashes in each, and sets of them another order. In these runs connections
    of two controllers break at once, and one of them asks all switches.
    """
    program = "from checks.soak.run import run; from checks.soak.generate import draw; print([run(draw(s)).trace for s in {}])"
    seeds = [s for s in range(60) if draw(s).chaos.controllers > 1 and draw(s).chaos.breaks][:3]
    traces = [
        subprocess.run(
            [sys.executable, "-c", program.format(seeds)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for hashes in ("1", "2")
    ]
    assert traces[0] == traces[1] != ""


def test_calls_that_nobody_answers_and_that_have_no_deadline_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = Scenario(1, SMALL, Chaos(silent=0.5, empty=True))
    assert run(scenario).problems == []
    scaled = Timing.scaled
    monkeypatch.setattr(Timing, "scaled", lambda self, by: scaled(msgspec_free(self), by))
    assert run(scenario).kinds >= {"diff"}


def msgspec_free(timing: Timing) -> Timing:
    """Calls may take for ever."""
    return Timing(timing.interval_s, call_s=1e6, push_s=1e6)


def test_a_switch_restarts_between_a_write_and_its_answer() -> None:
    """And calls that are done twice, and lists of digests that are lost or come twice, do no harm."""
    settings = {
        **SMALL,
        "scheme": "rlb",
        "pfc": "default",
        "fault": ["blackhole:pairs=0.5,where=spine1,at=1us"],
    }
    chaoses = (Chaos(crashes=1.0, empty=True), Chaos(twice=1.0, empty=True), Chaos(digests=1.0))
    for chaos in chaoses:
        scenario = Scenario(1, {**settings, "fault": []}, chaos)
        control = seen(scenario)
        assert run(scenario).problems == []
        assert (control.crashes > 0) == (chaos.crashes > 0)


def seen(scenario: Scenario) -> DisturbedController:
    """The controllers of a run."""
    made: list[DisturbedController] = []

    def make(network: Network, job: Job, happened: Callable[[Event], None]) -> DisturbedController:
        made.append(DisturbedController(network, job, scenario, happened))
        return made[0]

    run_plan(scenario.plan(), VirtualBackend(control=make), lambda _progress: None, label="soak")
    return made[0]


def test_order_is_promised_by_whom_nothing_disturbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """ECMP keeps order as long as no link dies; a scheme that sprays does not, and is found if it said so."""
    monkeypatch.setattr(soak_run, "ONE_PATH", ("ecmp", "spray"))
    settings = {**SMALL, "workload": "permutation:size=256KiB", "transport": "sr"}
    assert run(Scenario(1, settings)).problems == []
    spray = Scenario(1, {**settings, "scheme": "spray", "workload": "incast:degree=3,size=256KiB"})
    assert "order" in run(spray).kinds
    assert run(replace(spray, chaos=Chaos(empty=True))).kinds <= {"afterwards"}


def test_flows_that_come_when_all_is_mended_are_as_fast_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(1, {**SMALL, "workload": "random:flows=2,size=4KiB"}, Chaos(stale=(1,)))
    assert run(scenario).problems == []
    monkeypatch.setattr(soak_run, "SLOWDOWN", 0.5)
    assert run(scenario).kinds == {"afterwards"}


def test_what_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on the way can be cleaned up."""

    def for_ever(*_: object) -> None:
        async def poll() -> None:
            while True:
                await asyncio.sleep(0)

        with Network(parse_topology(SMALL["topology"])) as network:
            loop = VirtualLoop(network)
            try:
                loop.run_ready(lambda: loop.create_task(poll()))
            finally:
                loop.end()

    monkeypatch.setattr(soak_run, "LONGEST_S", 0.2)
    monkeypatch.setattr(soak_run, "_run", for_ever)
    assert run(draw(1)).kinds == {"time"}


def test_an_error_is_found_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(soak_run, "_run", wrong)
    [problem] = run(draw(1)).problems
    assert problem.startswith("code: ZeroDivisionError at test_soak.py:")


def test_what_fails_is_made_as_small_as_it_still_fails() -> None:
    scenario = Scenario(
        7,
        {
            **SMALL,
            "scheme": "flowcut:variant=full",
            "topology": "fat-tree:k=4,rate=10Gbps,delay=1us",
            "pfc": "default",
            "fault": ["drop:rate=0.1,at=1us,until=9us", "ack-loss:rate=0.1,at=1us,until=9us"],
        },
        Chaos(
            latency=0.3,
            spread=5.0,
            lost=0.2,
            controllers=2,
            kills=(Kill(0, 1, 1), Kill(1, 2, 1)),
            breaks=(Break("s", 3),),
            full=(Full("core1_1", 1, 1),),
            old="ecmp",
            stale=(30,),
        ),
    )

    def fails(other: Scenario) -> bool:
        drops = any(fault.startswith("drop") for fault in other.faults)
        return drops and any(kill.controller == 1 for kill in other.chaos.kills)

    small = shrink(scenario, fails)
    assert fails(small)
    assert small.faults == ["drop:rate=0.1,at=1us,until=9us"]
    assert small.chaos == Chaos(kills=(Kill(1, 2, 1),))
    assert small.settings["topology"] == SMALLEST[0]
    assert "pfc" not in small.settings
    assert small.settings["scheme"] == "flowcut"


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each that fails, by which it runs again; 2 for bad words."""
    monkeypatch.setattr(command, "run", lambda s: ScenarioResult(["end: no"] if s.seed == 3 else []))
    assert command.main(["--seeds", "2..4"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "python -m checks.soak --seed 3  # end: no"
    assert out[1].startswith("3 scenarios, 1 failed, ")
    assert command.main(["--seed", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert command.main(["--scenario", shown]) == 0
    capsys.readouterr()
    for settings in (["--seeds", "x"], ["--seeds", "4..2"], ["--scenario", "{}"], ["--scenario", "{"]):
        assert command.main(settings) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
