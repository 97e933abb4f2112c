# SPDX-License-Identifier: Apache-2.0
"""Following: all that a running switch does to some packets, and which others pass them in its queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import Switch
from tailrace.switch.trace.dry_run import TraceError
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import Written, nothing_written, octets, records
from tailrace.switch.trace.tracing_build import glass_of

ROOM_WORDS = 1 << 21
"""Room for what happens between two looks; 16 MiB."""

MOST_PASSED = 1000
"""Packets that are kept of those that pass one in a queue; more are counted."""

Arrival = tuple[int, int]
"""When a packet comes in, in ps, and the port."""


@dataclass(slots=True)
class Passing:
    """A packet that came to a port's queues later than another, and left them earlier."""

    priority: int
    queued_ps: int
    left_ps: int
    frame: bytes = b""


@dataclass(slots=True)
class Visit:
    """A packet in a queue: what waited there when it came, when it came and left, and for how long in
    between pauses held the queue. `left_ps` None: it never left. `passed` counts those that passed it.
    """

    port: int
    priority: int
    packets: int
    bytes: int
    queued_ps: int
    paused_before_ps: int
    left_ps: int | None = None
    paused_ps: int = 0
    passed: int = 0
    passing: list[Passing] = field(default_factory=list)
    later: dict[int, Passing] = field(default_factory=dict)
    """Who has come to the port since, by number."""


@dataclass(slots=True)
class Followed:
    """What a switch did to one packet. `sent`: when and by which port it left, as `frame`; `drop` and
    `end_ps`: why and when it was dropped instead. `rounds`: times that it came to ingress again.
    """

    visits: list[Visit] = field(default_factory=list)
    rounds: int = 0
    sent: Arrival | None = None
    drop: str = ""
    end_ps: int | None = None
    trace: Trace | None = None
    frame: bytes = b""
    virtual_bytes: int = 0

    @property
    def ended(self) -> bool:
        return self.sent is not None or bool(self.drop)


class Following:
    """Follows packets through a switch, from now until `close`; that is before the switch is closed.

    Meanwhile the switch runs a second build of its program, which does the same, several times as slow.

    Args:
        arrivals: the packets, by when and where they come in.
        written: tells what the controller has written; it is asked when following ends.

    Raises:
        TraceError: the switch has no program, or there is no memory.
        ProgramError: the program cannot be compiled for this.
    """

    def __init__(
        self, switch: Switch, arrivals: Sequence[Arrival], written: Written = nothing_written
    ) -> None:
        if switch.program is None:
            raise TraceError("the switch has no program")
        self._switch, self._written = switch, written
        self._core = load()
        self._glass = glass_of(switch.program)
        self._made = self._glass.room(ROOM_WORDS)
        times, ports = [list(each) for each in zip(*arrivals, strict=True)] or [[], []]
        if (
            not self._made
            or self._core.tr_glass_await(switch.handle, self._made, times, ports, len(times)) != C.TR_OK
        ):
            raise TraceError("out of memory")
        if self._core.tr_glass_watch(switch.handle, self._made, self._glass.plain, self._glass.entry, 1) < 0:
            raise TraceError("the switch runs another program now")
        self._words = ffi.new("uint64_t[]", ROOM_WORDS)
        self._n: Any = ffi.new("uint32_t[2]")
        self._awaited = set(arrivals)
        self._own: dict[int, Followed] = {}
        self._raw: dict[int, list[int]] = {}
        self._leaving: dict[int, list[Passing]] = {}
        self.found: dict[Arrival, Followed] = {}
        """What is known so far, by arrival."""
        self.untold = 0
        """Looks between which more happened than there was room for."""
        self._before = switch.on_program
        switch.on_program = self._replaced

    def _replaced(self) -> None:
        """The switch has another program: what was in it is gone, and nothing more is told."""
        self.look()
        now = self._core.tr_drop_name(C.TR_DROP_RELOAD)
        for followed in self._own.values():
            if not followed.ended:
                followed.drop = ffi.string(now).decode()
        if self._before is not None:
            self._before()

    def close(self) -> None:
        """Takes what there is, and lets the switch go on with its own program."""
        self.look()
        self._switch.on_program = self._before
        self._core.tr_glass_watch(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)
        reader = self._glass.reader(self._written)
        words = [word for raw in self._raw.values() for word in raw]
        told = reader.told(words)
        for number, followed in self._own.items():
            steps, deep = reader.nested(told, number)
            name = self._glass.program.model.name
            followed.trace = Trace(program=name, steps=steps, cut=deep or bool(self.untold))

    def look(self) -> None:
        """Takes what has happened since the last look; to be called before there is no room any more."""
        cut, missed = self._n, self._n + 1
        n = self._core.tr_glass_take(self._switch.handle, self._made, self._words, ROOM_WORDS, cut, missed)
        self.untold += bool(cut[0] or missed[0])
        for kind, mark, time_ps, payload in records(ffi.unpack(self._words, n) if n else []):
            number = mark & ~C.TR_GLASS_BRIEF
            if not mark & C.TR_GLASS_BRIEF:
                if kind == C.TR_SEEN_ENTER:
                    self._enter(number, (time_ps, payload[0]))
                raw = self._raw.setdefault(number, [])
                raw += (kind, number, time_ps, len(payload), *payload)
            self._take(kind, number, time_ps, payload)

    def _enter(self, number: int, arrival: Arrival) -> None:
        if number in self._own:
            self._own[number].rounds += 1
        elif arrival in self._awaited and arrival not in self.found:
            self._own[number] = self.found[arrival] = Followed()

    def _take(self, kind: int, number: int, time_ps: int, payload: Sequence[int]) -> None:
        own = self._own.get(number)
        if kind == C.TR_SEEN_QUEUE:
            self._queued(own, number, time_ps, payload)
        elif kind == C.TR_SEEN_EGRESS:
            self._left(own, number, time_ps, payload)
        elif kind == C.TR_SEEN_SENT:
            frame = octets(payload[3:], payload[1])
            for passing in self._leaving.pop(number, []):
                passing.frame = frame
            if own is not None:
                own.sent, own.end_ps = (time_ps, payload[0]), time_ps
                own.frame, own.virtual_bytes = frame, payload[2]
        elif kind == C.TR_SEEN_DROP:
            self._leaving.pop(number, None)
            for followed in self._own.values():
                for visit in followed.visits[-1:]:
                    visit.later.pop(number, None)
            if own is not None:
                own.drop = ffi.string(self._core.tr_drop_name(payload[0])).decode()
                own.end_ps = time_ps

    def _waiting(self, port: int) -> list[Visit]:
        """Those that are followed and wait at a port now."""
        return [
            visit
            for followed in self._own.values()
            if not followed.ended
            for visit in followed.visits[-1:]
            if visit.left_ps is None and visit.port == port
        ]

    def _queued(self, own: Followed | None, number: int, time_ps: int, payload: Sequence[int]) -> None:
        port, priority, packets, waiting_bytes, paused_ps = payload
        for visit in self._waiting(port):
            visit.later[number] = Passing(priority, time_ps, 0)
        if own is not None:
            own.visits.append(Visit(port, priority, packets, waiting_bytes, time_ps, paused_ps))

    def _left(self, own: Followed | None, number: int, time_ps: int, payload: Sequence[int]) -> None:
        port, _priority, _ticks, paused_ps = payload
        if own is not None and own.visits:
            visit = own.visits[-1]
            visit.left_ps, visit.paused_ps = time_ps, paused_ps - visit.paused_before_ps
            visit.later.clear()
        for visit in self._waiting(port):
            passing = visit.later.pop(number, None)
            if passing is None:
                continue
            passing.left_ps = time_ps
            visit.passed += 1
            if len(visit.passing) < MOST_PASSED:
                visit.passing.append(passing)
                self._leaving.setdefault(number, []).append(passing)
