# SPDX-License-Identifier: Apache-2.0
"""Controllers of a network in virtual time under disturbances: they are killed, several run at once, channels
fail, and switches restart during a Write, are full, or have entries of an earlier controller.

The intent of a switch is the program and the entities that it should have. Of RealController, `memory` is
gRPC within this process, `_services` are the P4Runtime servers by switch, and `_loop.run_ready` calls a
function in the event loop of virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from checks.soak.scenario import Break, Full, Kill, Scenario
from tailrace.controller.controller import Controller
from tailrace.controller.reconcile import differences, install_all
from tailrace.controller.session import DEFAULT_ELECTION_ID, SessionState
from tailrace.p4rt import programs
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends
from tailrace.p4rt.events import Event
from tailrace.p4rt.grpc_in_memory import ChannelModel, RpcFault
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.messages import p4r
from tailrace.schemes.intent import intent
from tailrace.sim.job import Job, RealControllerConfig
from tailrace.sim.link_faults import LinkDown, last_change_ns
from tailrace.sim.network import Network
from tailrace.sim.real_controller import RealController
from tailrace.spec.constants import NS_PER_S
from tailrace.topology.paths.shortest import Down

MOST_CRASHES = 3
"""Limit per scenario of restarts between a Write and its response; without it, all Writes might fail."""

POLL_SHARE = 0.25
"""Time between two polls of the switches for messages, as a share of the interval of link probes."""

CHANGES = ("Write", "SetForwardingPipelineConfig")


def quiet_ns(scenario: Scenario, job: Job) -> int:
    """The time at which all faults and disturbances of a scenario are over, except permanent ones."""
    return max(scenario.chaos.quiet_ns, *map(last_change_ns, job.faults), 0)


def dead_for_ever(job: Job) -> Down:
    """The ends (switch, port) of links that stay down for ever."""
    dead_ends = set()
    for fault in job.faults:
        if isinstance(fault, LinkDown) and fault.until_ns is None:
            ends = {fault.a, fault.b}
            for link in job.topology.links:
                if {link.a, link.b} == ends:
                    dead_ends |= {(link.a, link.a_port), (link.b, link.b_port)}
    return frozenset(dead_ends)


class DisturbedController(RealController):
    """Runs one or more controllers like those of real time, under the disturbances of a scenario."""

    def __init__(
        self, network: Network, job: Job, scenario: Scenario, happened: Callable[[Event], None]
    ) -> None:
        chaos = self._chaos = scenario.chaos
        self._fault_rng = random.Random(f"mishaps {job.seed}")
        self._quiet_ns = quiet_ns(scenario, job)
        self._dead = dead_for_ever(job)
        self._wanted: dict[str, SwitchIntent] | None = None
        self._old = scenario.earlier(job.topology) if chaos.old else None
        self.crashes = 0
        self._memory_limit = network.p4rt(job.topology.switches[0].name).device.memory.limit
        self._begin(network, job)
        super().__init__(network, job, RealControllerConfig(), happened)
        # a push takes no virtual time; a longer timeout would cost hundreds of rounds when a response is lost
        self.timing = replace(self.timing, push_s=self.timing.call_s)
        self._latency_ns = round(POLL_SHARE * self.interval_ns)
        self.memory.model = ChannelModel(self._disturbed_delay_s, self._rpc_fault, self._done)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.controllers = {index: self._new_controller(index) for index in range(chaos.controllers)}
        self.controller = self.controllers[0]
        self.stopped = False
        """Whether controllers were stopped because all was repaired: the remaining traffic waits for timeouts
        of NICs, and controllers would only send thousands of probes meanwhile."""
        self.stopped_ns: int | None = None
        """When they were stopped; None: the run ended before."""

    def _begin(self, network: Network, job: Job) -> None:
        """Prepares the state of the switches before the first controller starts."""
        if self._old is not None or self._chaos.stale:
            links = [job.topology.links[index] for index in self._chaos.stale]
            ends = {end for link in links for end in ((link.a, link.a_port), (link.b, link.b_port))}
            earlier = intent(job.topology, self._old or job.scheme, job.switches, frozenset(ends))
            install_all(network.p4rt, earlier)
        if self._chaos.empty:
            for switch in network.switches:
                network.p4rt(switch.name).restart()

    def _new_controller(self, index: int) -> Controller:
        """Makes a controller, but does not start it."""
        election_id = DEFAULT_ELECTION_ID - (0 if self._chaos.same else index)
        old = index == 0 and self._network.now_ns < self._chaos.old_ns
        return self._make(election_id, self._old if old else None)

    # ---- disturbances ----

    @property
    def interval_ns(self) -> int:
        """Time between two rounds of link probes."""
        return round(self.timing.interval_s * NS_PER_S)

    @property
    def _disturbs(self) -> bool:
        return self._network.now_ns < self._chaos.until_ns

    def _disturbed_delay_s(self, _switch: str) -> float:
        chaos = self._chaos
        longest = 1 + (chaos.spread if self._disturbs else 0.5)
        return self.timing.interval_s * chaos.latency * self._fault_rng.uniform(0.5, longest)

    def _rpc_fault(self, _switch: str, method: str) -> RpcFault:
        chaos = self._chaos
        if not self._disturbs or method == "StreamChannel":
            return RpcFault.NONE
        kinds = (
            RpcFault.REQUEST_LOST,
            RpcFault.RESPONSE_LOST,
            RpcFault.NO_RESPONSE,
            RpcFault.DUPLICATED,
            RpcFault.NONE,
        )
        shares = (chaos.lost, chaos.responses, chaos.silent, chaos.twice)
        return self._fault_rng.choices(kinds, (*shares, max(0.0, 1 - sum(shares))))[0]

    def _done(self, switch: str, method: str) -> None:
        """Handles a call that a switch has carried out: perhaps restarts the switch before it responds."""
        if not self._chaos.crashes or method not in CHANGES or not self._disturbs:
            return
        if self.crashes < MOST_CRASHES and self._fault_rng.random() < self._chaos.crashes:
            self.crashes += 1
            self._network.call_at(self._network.now_ns + 1, partial(self._crash, switch))

    def _crash(self, switch: str) -> None:
        self.switch_lost(switch)
        self._network.switch_restart(switch, None, self.interval_ns, partial(self.switch_restored, switch))

    def _serve(self, switch: str) -> None:
        super()._serve(switch)
        if self._chaos.digests:
            device = self._network.p4rt(switch).device
            # replaces the method that returns the digest lists that are due
            setattr(device, "digest_lists", partial(self._disturbed, device.digest_lists))  # noqa: B010

    def _disturbed(self, take: Callable[[int], list[p4r.DigestList]], now_ns: int) -> list[p4r.DigestList]:
        """Loses some digest lists and duplicates others."""
        delivered = []
        for digests in take(now_ns):
            hit = self._disturbs and self._fault_rng.random() < self._chaos.digests
            delivered += [digests] * (self._fault_rng.choice((0, 2)) if hit else 1)
        return delivered

    def _fill(self, full: Full) -> None:
        """Makes a switch refuse further entries for a time: its memory limit is what it uses now."""
        memory = self._network.p4rt(full.switch).device.memory
        memory.limit = memory.used

        def free() -> None:
            memory.limit = self._memory_limit

        self._network.call_at(self._network.now_ns + full.for_ns, free)

    def _break(self, broken: Break) -> None:
        self._loop.run_ready(partial(self.memory.break_off, broken.switch))

    # ---- controllers ----

    @property
    def down(self) -> Down:
        return next(iter(self.controllers.values())).down if self.controllers else frozenset()

    def start(self) -> None:
        for index in tuple(self.controllers):
            self._start(index)
        self._listen()
        chaos, call_at = self._chaos, self._network.call_at
        for kill in chaos.kills:
            call_at(kill.at_ns, partial(self._kill, kill))
        for broken in chaos.breaks:
            call_at(broken.at_ns, partial(self._break, broken))
        for full in chaos.full:
            call_at(full.at_ns, partial(self._fill, full))
        if chaos.old_ns:
            call_at(chaos.old_ns, partial(self._kill, Kill(0, chaos.old_ns, 0)))
        call_at(self._quiet_ns + 1, self._stop_when_repaired)

    def _listen(self) -> None:
        if not self.stopped:
            super()._listen()

    def _stop_when_repaired(self) -> None:
        """Stops all controllers after the last repair."""
        if self.reconciled and not self.violations():
            self.stopped_ns = self._network.now_ns
            self.end()
        else:
            self._network.call_at(self._network.now_ns + 4 * self.interval_ns, self._stop_when_repaired)

    def end(self) -> None:
        """Stops all controllers."""
        self.stopped = True
        for task in self._tasks.values():
            self._loop.run_ready(task.cancel)
        self._tasks.clear()

    def _start(self, index: int) -> None:
        def begin() -> None:
            self._tasks[index] = self._loop.create_task(self.controllers[index].run())

        self._loop.run_ready(begin)

    def _kill(self, kill: Kill) -> None:
        """Kills a controller at any point; its pending calls break."""
        task = self._tasks.pop(kill.controller, None)
        if task is None:  # it was killed before
            return
        del self.controllers[kill.controller]
        self._loop.run_ready(task.cancel)
        self._network.call_at(self._network.now_ns + kill.for_ns, partial(self._start_new, kill.controller))

    def _start_new(self, index: int) -> None:
        self.controllers[index] = self._new_controller(index)
        self._start(index)

    def check(self) -> None:
        for task in self._tasks.values():
            if task.done():
                task.result()

    # ---- checks at the end of the run ----

    @property
    def reconciled(self) -> bool:
        """Whether each switch is READY at one controller and all other controllers are its backups, and each
        primary controller has detected exactly the dead links.
        """
        if self.stopped:
            return True
        expected = Counter({SessionState.READY: 1, SessionState.BACKUP: self._chaos.controllers - 1})
        controllers = self.controllers.values()
        all_ready = all(
            Counter(c.sessions[name].state for c in controllers) == expected for name in self._services
        )
        return all_ready and all(map(self._has_dead_links, controllers))

    def _has_dead_links(self, controller: Controller) -> bool:
        primary = any(session.state is SessionState.READY for session in controller.sessions.values())
        return not primary or controller.down == self._dead

    def describe(self) -> str:
        """The session states and dead links of each controller, for messages."""
        return "; ".join(
            f"controller {index}: "
            + ", ".join(f"{name} {session.state.value}" for name, session in controller.sessions.items())
            + (f"; down: {sorted(controller.down)}" if controller.down else "")
            for index, controller in self.controllers.items()
        )

    def violations(self) -> list[str]:
        """How switches differ from their intent, given the links that stay dead."""
        job, problems = self._job, []
        if self._wanted is None:
            self._wanted = intent(job.topology, job.scheme, job.switches, self._dead)
        for name, wanted in self._wanted.items():
            endpoint, program = InProcess(self._network.p4rt(name)), programs.load(wanted.program)
            if run_at_once(endpoint.cookie()) != program.cookie:
                problems.append(f"diff: {name} has no program, or another one")
            elif changes := run_at_once(differences(endpoint, program, wanted.entities)):
                problems.append(f"diff: {name} differs in {len(changes)} entities")
        return problems

    def open_ends(self) -> list[str]:
        """Streams and calls of stopped controllers that switches have not ended."""
        problems = [f"{n}: {len(s.streams)} streams" for n, s in self._services.items() if s.streams]
        problems += [f"{n}: {len(s.tasks)} calls" for n, s in self.memory.servers.items() if s.tasks]
        return problems
