# SPDX-License-Identifier: Apache-2.0
"""Controllers of a network in virtual time that are disturbed: killed, several at once, over bad channels."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from soak.scenario import LAST_NS, QUIET_NS, Chaos, Kill
from tailrace.controller.controller import Controller
from tailrace.controller.reconcile import differences
from tailrace.controller.session import DEFAULT_ELECTION_ID, State
from tailrace.experiments.backends.job import Job
from tailrace.experiments.backends.virtual.live import LiveController
from tailrace.experiments.plan.controller import Live
from tailrace.native.virtual import Network
from tailrace.p4rt import programs
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.events import Event
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.memory import Mishap, Ways
from tailrace.schemes.intent import intent
from tailrace.topology.paths.shortest import Down
from tailrace.words.constants import NS_PER_S


class Disturbed(LiveController):
    """As the controller of real time, and more of them; until LAST_NS all goes wrong that a scenario has."""

    def __init__(self, network: Network, job: Job, chaos: Chaos, happened: Callable[[Event], None]) -> None:
        self._chaos = chaos
        self._mishaps = random.Random(f"mishaps {job.seed}")
        if chaos.empty:
            for switch in network.switches:
                network.p4rt(switch.name).restart()
        super().__init__(network, job, Live(), happened)
        # programs are pushed at once here: nobody need wait hundreds of rounds for an answer that was lost
        self.timing = replace(self.timing, push_s=self.timing.call_s)
        self.controller = self._make(DEFAULT_ELECTION_ID)
        self.memory.ways = Ways(self._disturbed_delay_s, self._mishap)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.controllers: dict[int, Controller] = {0: self.controller}
        self.rests = False
        """Whether all was as it should be after the last fault, and controllers were ended: what traffic is
        left waits for timeouts of NICs, in which nothing would happen but thousands of probes."""
        for number in range(1, chaos.controllers):
            self.controllers[number] = self._make(DEFAULT_ELECTION_ID - number)

    # ---- what goes wrong ----

    @property
    def interval_ns(self) -> int:
        """Between two rounds of probes."""
        return round(self.timing.interval_s * NS_PER_S)

    def _disturbed_delay_s(self, _switch: str) -> float:
        chaos = self._chaos
        longest = 1 + (chaos.spread if self._network.now_ns < LAST_NS else 0.5)
        return self.timing.interval_s * chaos.latency * self._mishaps.uniform(0.5, longest)

    def _mishap(self, _switch: str, method: str) -> Mishap:
        chaos = self._chaos
        if self._network.now_ns >= LAST_NS or method == "StreamChannel":
            return Mishap.NONE
        kinds = (Mishap.REQUEST_LOST, Mishap.ANSWER_LOST, Mishap.SILENCE, Mishap.NONE)
        shares = (chaos.lost, chaos.answers, chaos.silent)
        return self._mishaps.choices(kinds, (*shares, max(0.0, 1 - sum(shares))))[0]

    # ---- controllers ----

    @property
    def down(self) -> Down:
        return next(iter(self.controllers.values())).down if self.controllers else frozenset()

    def start(self) -> None:
        for number in tuple(self.controllers):
            self._start(number)
        self._listen()
        for kill in self._chaos.kills:
            self._network.call_at(kill.at_ns, partial(self._kill, kill))
        for broken in self._chaos.breaks:
            cut = partial(self.memory.break_off, broken.switch)
            self._network.call_at(broken.at_ns, partial(self._loop.turn, cut))
        self._network.call_at(QUIET_NS, self._rest)

    def _listen(self) -> None:
        if not self.rests:
            super()._listen()

    def _rest(self) -> None:
        """Ends all controllers when everything is mended."""
        if self.settled and not wrong(self._network, self._job):
            self.rests = True
            for task in self._tasks.values():
                self._loop.turn(task.cancel)
            self._tasks.clear()
        else:
            self._network.call_at(self._network.now_ns + 4 * self.interval_ns, self._rest)

    def _start(self, number: int) -> None:
        def begin() -> None:
            self._tasks[number] = self._loop.create_task(self.controllers[number].run())

        self._loop.turn(begin)

    def _kill(self, kill: Kill) -> None:
        """Ends a controller wherever it is; what it had under way breaks."""
        task = self._tasks.pop(kill.controller, None)
        if task is None:  # it is dead already
            return
        del self.controllers[kill.controller]
        self._loop.turn(task.cancel)
        self._network.call_at(self._network.now_ns + kill.for_ns, partial(self._revive, kill.controller))

    def _revive(self, number: int) -> None:
        self.controllers[number] = self._make(DEFAULT_ELECTION_ID - number)
        self._start(number)

    def check(self) -> None:
        for task in self._tasks.values():
            if task.done():
                task.result()

    # ---- in the end ----

    @property
    def settled(self) -> bool:
        """Whether each switch has one primary that holds it ready, and no controller knows of a dead link."""
        if self.rests:
            return True
        all_ready = all(
            [c.sessions[name].state for c in self.controllers.values()].count(State.READY) == 1
            for name in self._services
        )
        return all_ready and not any(self._knows(c) for c in self.controllers.values())

    @staticmethod
    def _knows(controller: Controller) -> Sequence[object]:
        """Dead links of a controller that is primary somewhere."""
        primary = any(session.state is State.READY for session in controller.sessions.values())
        return tuple(controller.down) if primary else ()

    def describe(self) -> str:
        """Who stands how with whom, for people."""
        return "; ".join(
            f"controller {number}: "
            + ", ".join(f"{name} {session.state.value}" for name, session in controller.sessions.items())
            + (f"; down: {sorted(controller.down)}" if controller.down else "")
            for number, controller in self.controllers.items()
        )


def wrong(network: Network, job: Job) -> list[str]:
    """How switches differ from what they should hold while no link is dead."""
    found = []
    for name, wanted in intent(job.topology, job.scheme, job.switches).items():
        endpoint, program = InProcess(network.p4rt(name)), programs.load(wanted.program)
        if run_at_once(endpoint.cookie()) != program.cookie:
            found.append(f"diff: {name} has no program")
            continue
        changes = run_at_once(differences(endpoint, program, wanted.entities))
        if changes:
            found.append(f"diff: {name} differs in {len(changes)} entities")
    return found
