# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario, and says which promises it broke.

order       a scheme that promises order delivers every flow in order, whatever fails (Flowcut §II)
end         every flow ends
balance     every frame is accounted for, and none is left in a switch or on a wire
entries     no flow has bytes in flight in a switch when nothing was lost and all is acknowledged
pauses      no pause holds a queue, no circle of pauses stands
diff        every switch holds what it should while no link is dead, with one primary controller
code        no error but those that are told in one line
time        it ends within LONGEST_S of real time, hundreds of times what it takes
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from soak.control import Disturbed, wrong
from soak.scenario import QUIET_NS, Scenario
from tailrace.experiments.backends.job import Job
from tailrace.experiments.backends.outcome import Progress
from tailrace.experiments.backends.virtual.control import Control
from tailrace.experiments.backends.virtual.run import VirtualBackend
from tailrace.experiments.results.result import Result
from tailrace.experiments.run.run import run as run_plan
from tailrace.native.virtual import Network

SETTLE_ROUNDS = 400
"""Rounds of link probes, after all traffic and all faults, within which controllers have mended everything:
far more than any retry of a call, a stream or an election takes."""

LONGEST_S = 300.0

IN_ORDER = ("flowcut",)
"""Schemes that promise order whatever happens, by name."""

IN_FLIGHT = ("flow_in_flight_bytes", "untracked_bytes")
"""Registers of bytes that are on their way."""

LOSSES = ("link-down", "drop", "ack-loss", "blackhole", "switch-restart")
"""Faults that lose packets or ACKs, by name."""


@dataclass
class Found:
    """What came of a scenario: problems, each as `promise: what is wrong`; and the run's trace."""

    problems: list[str] = field(default_factory=list)
    trace: str = ""
    frames: int = 0

    @property
    def kinds(self) -> frozenset[str]:
        """The promises that were broken."""
        return frozenset(problem.partition(":")[0] for problem in self.problems)


def run(scenario: Scenario) -> Found:
    """Runs it. Raises nothing: whatever goes wrong is a problem."""
    found = Found()
    try:
        with _limited():
            _run(scenario, found)
    except _TooLongError:
        found.problems.append(f"time: it did not end within {LONGEST_S:.0f} s")
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        found.problems.append(f"code: {type(error).__name__} at {place}: {error}")
    return found


class _TooLongError(KeyboardInterrupt):
    """asyncio hands on no other error."""


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(scenario: Scenario, found: Found) -> None:
    planned = scenario.plan()
    job = planned.job
    controls: list[Disturbed] = []

    def make_control(network: Network, job: Job, happened) -> Control:  # type: ignore[no-untyped-def]
        controls.append(Disturbed(network, job, scenario.chaos, happened))
        return controls[0]

    def afterwards(network: Network) -> None:
        found.problems += _when_it_is_quiet(network, controls[0], scenario, job)

    backend = VirtualBackend(control=make_control, afterwards=afterwards)
    result = run_plan(planned, backend, _nothing, label="soak")
    found.trace = str(result.summary.trace_sha256)
    found.problems += _of_the_run(result, scenario)


def _nothing(_progress: Progress) -> None:
    """Nobody is told of progress."""


def _of_the_run(result: Result, scenario: Scenario) -> Iterator[str]:
    summary = result.summary
    if not result.complete:
        yield f"end: {summary.flows - summary.completed} of {summary.flows} flows did not end"
    name = scenario.words["scheme"].partition(":")[0]
    if name in IN_ORDER and summary.packets.out_of_order:
        yield f"order: {summary.packets.out_of_order} packets out of order"
    if summary.deadlock:
        yield f"pauses: deadlock: {', '.join(summary.deadlock)}"


def _when_it_is_quiet(network: Network, control: Disturbed, scenario: Scenario, job: Job) -> Iterator[str]:
    last_ns = max(network.now_ns, QUIET_NS)
    end_ns = last_ns + SETTLE_ROUNDS * control.interval_ns
    network.advance_to(last_ns)
    while not (control.settled and not wrong(network, job)) and network.now_ns < end_ns:
        network.advance_to(network.now_ns + 4 * control.interval_ns)
    if not control.settled:
        yield f"diff: controllers are not settled: {control.describe()}"
    yield from wrong(network, job)
    account = network.account()
    if not account.balanced:
        yield f"balance: {account}"
    for switch in network.switches:
        core = network.switch(switch.name)
        if core.held(network.now_ns):
            yield f"pauses: {switch.name} holds {len(core.held(network.now_ns))} queues for pauses"
        if not _loses(scenario):
            for register in core.model.registers:
                if register.name.rpartition(".")[2] in IN_FLIGHT:
                    left = sum(1 for cell in core.register_read_all(register.index) if cell)
                    if left:
                        yield f"entries: {switch.name}: {left} cells of {register.name} are not 0"


def _loses(scenario: Scenario) -> bool:
    """Whether anything may be lost on its way."""
    names = {fault.partition(":")[0] for fault in scenario.faults}
    return bool(names & set(LOSSES)) or scenario.chaos.empty or "pfc" not in scenario.words
