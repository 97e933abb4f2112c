# SPDX-License-Identifier: Apache-2.0
"""The controller of a network: computes the intent of every switch from topology, scheme and live links, and
keeps the switches as intended. An intent is the program and the entities that a switch should have.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio

from tailrace.controller.faulty_paths import PathSuppressor
from tailrace.controller.inband.relay import Registers, RelayServer, SuppressedLeft
from tailrace.controller.inband.responses import REASON_OF
from tailrace.controller.linkwatch import LinkMonitor, Liveness, link_names
from tailrace.controller.session import DEFAULT_ELECTION_ID, Hooks, Session, SessionState
from tailrace.controller.timing import Timing
from tailrace.p4rt import programs
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import connect
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.errors import ControllerError, SwitchError, UnreachableError
from tailrace.p4rt.events import CONTROLLER, LATE, LINK_DOWN
from tailrace.p4rt.events import Event as Event
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.target import Target
from tailrace.p4rt.tls import Tls
from tailrace.schemes.intent import intent
from tailrace.schemes.resolved import Resolved
from tailrace.schemes.watch import FormatTime, SuppressedPath
from tailrace.spec.constants import NS_PER_S
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down

_LIVENESS_QUERY = "READ_PORT"
"""The in-band query by which a switch shows that it keeps up; every program answers it."""


def _ignore(_event: Event) -> None:
    """The default listener: ignores an event."""


class _LoopClock:
    """The clock of an event loop, in nanoseconds since the epoch; it never goes back."""

    def __init__(self, epoch_ns: int) -> None:
        self._epoch_ns = epoch_ns
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def now_ns(self) -> int:
        return self._epoch_ns + round(asyncio.get_running_loop().time() * NS_PER_S)

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        wait_s = 0.0 if time_ns is None else max(0, time_ns - self.now_ns) / NS_PER_S

        def fire() -> None:
            self._timers.discard(timer)
            callback()

        timer = asyncio.get_running_loop().call_later(wait_s, fire)
        self._timers.add(timer)

    def cancel(self) -> None:
        """Cancels all timers."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def _utc(time_ns: int) -> str:
    """A time since the epoch, such as 2026-01-31T12:00:00.000Z."""
    epoch_ms = time_ns // 1_000_000
    seconds = datetime.fromtimestamp(epoch_ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}.{epoch_ms % 1000:03}Z"


class Controller:
    """Runs in an event loop: call `start`, `wait_ready` and later `stop`; or only `run`."""

    def __init__(
        self,
        topology: Topology,
        scheme: Resolved,
        switches: Mapping[str, SwitchAddress],
        target: Target,
        *,
        tls: Tls | None = None,
        timing: Timing | None = None,
        election_id: int = DEFAULT_ELECTION_ID,
        relay: Path | None = None,
        registers: Registers | None = None,
        on_event: Callable[[Event], None] = _ignore,
        calls: Any = grpc.aio,
        epoch_ns: int | None = None,
        when: FormatTime = _utc,
    ) -> None:
        """Computes every switch's intent; nothing is sent yet.

        Args:
            switches: the address of each switch of the topology.
            timing: the controller's intervals and timeouts.
            election_id: the election id to announce first. All controllers of a network may be given the same
                one: a controller whose id is taken announces the next lower id.
            relay: path of the socket through which inspection commands query switches; None: no socket.
            registers: reads a register for these commands if the P4Runtime server refuses it.
            on_event: called with every event.
            calls: makes the channels to switches: gRPC, or p4rt.grpc_in_memory.InMemoryGrpc.
            epoch_ns: time since the epoch when the event loop's clock was 0; None: from this machine's clock.
            when: formats a time for messages.

        Raises:
            IntentError: topology, scheme and target do not fit together.
            ControllerError: a program is missing, or `switches` are not those of the topology.
        """
        names = {switch.name for switch in topology.switches}
        if names != set(switches):
            name = min(names ^ set(switches))
            what = "its address is missing" if name in names else "the topology has no such switch"
            raise ControllerError(f"{name}: {what}")
        self.topology = topology
        self.scheme = scheme
        self.target = target
        self._load = functools.cache(programs.load)
        self._on_event = on_event
        self._timing = timing or Timing()
        self._monitor = LinkMonitor(topology, self._timing.missed)
        self._liveness = Liveness(self._timing.silent)
        self._late_since_s: dict[str, float] = {}  # switches that do not respond in time
        self._relay = None
        if relay is not None:
            self._relay = RelayServer(relay, self.ask, lambda: self.down, self._suppressed_left, registers)
        self._relay_runs = self._relay_failed = False
        self._divided = 0  # consecutive rounds in which this controller could claim switches (_claim)
        self._down: Down = frozenset()
        self._clock = _LoopClock(time.time_ns() - time.monotonic_ns() if epoch_ns is None else epoch_ns)
        # decides which paths that switches report as faulty are withdrawn, and for how long
        self._paths = scheme.watch(topology, target, on_event, when)
        self._faulty = PathSuppressor(self._clock, self._paths, lambda: self._down, self._rewrite)
        self._intents = self._compute()
        # results of pending queries, by switch, reason of the response (PacketInReason_t), and index
        self._asked: dict[tuple[str, str, int], list[asyncio.Future[bytes]]] = {}
        self._changed = asyncio.Event()
        self._links_discovered = asyncio.Event()
        self._announced: dict[str, SessionState] = {}  # last reported state by switch
        self._miswired: set[str] = set()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        hooks = Hooks(
            self._state_changed,
            self._packet,
            self._faulty.digest_received,
            self._wait_links_discovered,
            self._state_read,
        )
        self._sessions = {
            name: Session(
                name,
                address,
                hooks,
                election_id=election_id,
                timing=self._timing,
                connect=partial(connect, tls=tls, calls=calls),
            )
            for name, address in switches.items()
        }

    # ---- start and stop ----

    async def start(self) -> None:
        """Starts the sessions and the link probes."""
        for session in self._sessions.values():
            session.set_intent(self._intents[session.name])
            self._tasks.append(asyncio.create_task(session.run()))
        self._tasks.append(asyncio.create_task(self._watch_links()))

    async def wait_ready(self, timeout_s: float) -> None:
        """Waits until every switch has the entries of its intent.

        Raises:
            ControllerError: a switch is not ready in this time, or cannot become ready.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while waiting := [s for s in self._sessions.values() if s.state is not SessionState.READY]:
            self._raise_failure()
            self._changed.clear()
            remaining_s = deadline - asyncio.get_running_loop().time()
            watched = [asyncio.create_task(self._changed.wait()), *self._tasks]
            done, _ = await asyncio.wait(watched, timeout=remaining_s, return_when=asyncio.FIRST_COMPLETED)
            watched[0].cancel()
            if not done:
                first = waiting[0]
                more = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
                raise first.error or UnreachableError(first.name, f"not ready after {timeout_s:g} s{more}")

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def run(self) -> None:
        """Starts the controller, and runs it until it is cancelled or fails permanently.

        Raises:
            ControllerError: a failure that retries cannot repair.
        """
        await self.start()
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self._raise_failure()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Closes the sessions; switches keep their entries."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._clock.cancel()
        self._stopping = False
        if self._relay is not None and self._relay_runs:
            self._relay_runs = False
            await self._relay.stop()

    # ---- state ----

    @property
    def down(self) -> Down:
        """Both ends of every link that is down."""
        return self._down

    @property
    def suppressed(self) -> list[SuppressedPath]:
        """The paths withdrawn because a switch reported them as faulty; times are in ns since the epoch."""
        return self._paths.suppressed

    def _suppressed_left(self) -> list[SuppressedLeft]:
        """The suppressed paths with their remaining times."""
        now_ns = self._clock.now_ns
        return [(*path.end, max(0, path.until_ns - now_ns)) for path in self._paths.suppressed]

    @property
    def intents(self) -> Mapping[str, SwitchIntent]:
        """The intent of every switch."""
        return self._intents

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The session of every switch."""
        return self._sessions

    def _compute(self) -> dict[str, SwitchIntent]:
        return intent(self.topology, self.scheme, self.target, self._down, self._paths.suppressed_ports)

    def _state_changed(self, session: Session) -> None:
        self._changed.set()
        if self._stopping:
            return
        if (
            self._announced.get(session.name, SessionState.LOST) is session.state
            or session.state is SessionState.PRIMARY
        ):
            return
        self._announced[session.name] = session.state
        if session.state is SessionState.READY:
            how = "program pushed" if session.pushed else "program was there"
            text = f"{session.name}: ready ({how}, {session.report.writes} updates)"
            self._on_event(Event("switch-ready", session.name, text))
            self._probe_now(session.name)
        elif session.state is SessionState.BACKUP:
            self._on_event(Event("backup", session.name, f"{session.name}: another controller is primary"))
        else:
            why = session.error or f"{session.name}: the connection is lost"
            self._on_event(Event("switch-lost", session.name, str(why)))

    # ---- in-band queries ----

    async def ask(self, switch: str, op: str, index: int) -> bytes:
        """Sends a query `op` of PacketOutOp_t to a switch; returns the payload of its response.

        Raises:
            SwitchError: there is no such switch, it is not connected, or another controller is its primary.
            TimeoutError: no response came.
        """
        session = self._sessions.get(switch)
        if session is None:
            raise SwitchError(switch, "the topology has no such switch")
        key = (switch, REASON_OF[op], index)
        response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(key, []).append(response)
        try:
            session.packet_out(op, index)
            return await asyncio.wait_for(response, self._timing.ask_s)
        except asyncio.TimeoutError:
            raise TimeoutError(f"{switch}: no answer to {op} {index}") from None
        finally:
            self._asked[key].remove(response)
            if not self._asked[key]:
                del self._asked[key]

    def _packet(self, switch: str, fields: Mapping[str, int], payload: bytes) -> None:
        program = self._load(self._intents[switch].program)
        reason = program.enum_name("PacketInReason_t", fields["reason"])
        index = fields["index"]
        if reason == "LLDP":
            self._probe_received(switch, index, payload)
            return
        if reason == REASON_OF[_LIVENESS_QUERY]:
            self._liveness.response_received(switch, index)
        for response in self._asked.get((switch, reason, index), ()):
            if not response.done():
                response.set_result(payload)

    # ---- faulty paths ----

    def _state_read(self, switch: str, entities: list[p4r.Entity]) -> None:
        """Handles an earlier controller's entities: paths that it withdrew stay withdrawn for a while."""
        intended = self._intents[switch]
        program = self._load(intended.program)
        self._faulty.state_read(switch, program, encode(program, intended.entities), entities)

    def _rewrite(self, switches: Iterable[str]) -> None:
        """Recomputes all intents, and passes the intents of `switches` to their sessions."""
        self._intents = self._compute()
        for name in switches:
            self._sessions[name].set_intent(self._intents[name])

    # ---- links ----

    def _probe_received(self, switch: str, port: int, frame: bytes) -> None:
        problem = self._monitor.probe_received(switch, port, frame)
        if problem is not None and problem not in self._miswired:
            self._miswired.add(problem)
            self._on_event(Event("miswired", switch, problem))
        if self._down or not self._links_discovered.is_set():
            self._links_changed()

    def links_discovered(self) -> None:
        """Stops the wait for link discovery, during which entries of running switches are not changed."""
        self._links_discovered.set()

    async def _wait_links_discovered(self, session: Session) -> None:
        self._probe_now(session.name)
        await self._links_discovered.wait()

    def _probing(self) -> AbstractSet[str]:
        """The switches that send and receive probes for this controller, in order."""
        sessions = self._sessions.values()
        # carries: the switch has entries, without which it neither sends nor reports probes
        return {s.name: s for s in sessions if s.carries and s.state is not SessionState.BACKUP}.keys()

    def _probe_now(self, switch: str) -> None:
        """Probes the links of a newly connected switch, without waiting for the next round."""
        for probe in self._monitor.probes_of(switch, self._probing()):
            self._send(probe.switch, "SEND", probe.port, probe.frame)

    async def _watch_links(self) -> None:
        if not self.topology.links:
            self._links_discovered.set()
        clock = asyncio.get_running_loop().time
        due_s = clock()
        while True:
            lag_s = clock() - due_s
            # ordered by switch, unlike a set of names, and so the same in every process
            backup = {name: s for name, s in self._sessions.items() if s.state is SessionState.BACKUP}.keys()
            probing = self._probing()
            self._claim(backup)
            # the index of this round's queries, and the switches that did not answer the last ones in time
            index, late = self._liveness.round(probing)
            if probing:
                self._report_lag(lag_s)
            self._report_late(late, clock())
            # links at a switch with another primary are not judged: its packet-ins go to that controller
            for probe in self._monitor.round(probing, late.keys() | backup):
                self._send(probe.switch, "SEND", probe.port, probe.frame)
            # after the probes: a switch that answers the query has sent its probes
            for name in probing:
                self._send(name, _LIVENESS_QUERY, index)
            self._links_changed()
            await self._start_relay(probing)
            due_s = clock() + self._timing.interval_s
            await asyncio.sleep(self._timing.interval_s)

    def _claim(self, backup: Collection[str]) -> None:
        """Ends a division of the network between two controllers. The controller that is primary of the first
        reachable switch claims the switches of the other controller (`backup`). It waits for more rounds than
        it takes to declare a link down.
        """
        reached = [name for name, session in self._sessions.items() if session.state is not SessionState.LOST]
        may_claim = bool(backup) and reached[0] not in backup
        self._divided = self._divided + 1 if may_claim else 0
        if self._divided > self._timing.missed:
            self._divided = 0
            for name in backup:
                self._sessions[name].claim()

    def _send(self, switch: str, op: str, index: int, payload: bytes = b"") -> None:
        """Sends a packet-out; does nothing if the connection to the switch has just been lost."""
        with contextlib.suppress(SwitchError):
            self._sessions[switch].packet_out(op, index, payload)

    def _report_lag(self, lag_s: float) -> None:
        """Reports that this process was scheduled late. Responses that arrived meanwhile are read only after
        this round. So all switches count as late in this round, and no link is judged.
        """
        if lag_s >= self._timing.late_s:
            text = f"the controller ran {lag_s:.1f} s late; no link was judged meanwhile"
            self._on_event(Event(LATE, CONTROLLER, text, {"late_s": round(lag_s, 3)}))

    def _report_late(self, late: Mapping[str, int], now_s: float) -> None:
        """Reports how long a switch did not respond in time, once it responds again."""
        for name in late:
            self._late_since_s.setdefault(name, now_s - self._timing.interval_s * late[name])
        for name in [name for name in self._late_since_s if name not in late]:
            late_s = now_s - self._late_since_s.pop(name)
            if late_s >= self._timing.late_s:
                text = (
                    f"{name} did not answer in time for {late_s:.1f} s; its links were not judged meanwhile"
                )
                self._on_event(Event(LATE, name, text, {"late_s": round(late_s, 3)}))

    async def _start_relay(self, probing: Collection[str]) -> None:
        if self._relay is None or not probing or self._relay_runs:
            return
        try:
            await self._relay.start()
            self._relay_runs = True
        except ControllerError as error:
            # forwarding does not need the relay: its start is retried, but the failure is reported only once
            if not self._relay_failed:
                self._on_event(Event("relay", str(self._relay.path), str(error)))
            self._relay_failed = True

    def _links_changed(self) -> None:
        down = self._monitor.down
        if down != self._down:
            before, self._down = self._down, down
            for name in link_names(self.topology, down - before):
                self._on_event(Event(LINK_DOWN, name, f"{name}: link down"))
            for name in link_names(self.topology, before - down):
                self._on_event(Event("link-up", name, f"{name}: link up"))
            # paths whose link has recovered
            self._faulty.restore_paths()
            self._rewrite(self._sessions)
        if self._monitor.discovered:
            self._links_discovered.set()
