# SPDX-License-Identifier: Apache-2.0
"""Sending: a packet that a running switch takes in for real, and all that it does to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import Switch
from tailrace.switch.trace.dry_run import MOST_TOLD, TraceError
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import Written, nothing_written, octets, records
from tailrace.switch.trace.tracing_build import glass_of

MOST_S = 2.0
"""A packet that is in the switch after this time, or a copy of it, is followed no longer."""

LOOK_S = 0.005
"""Between two looks."""

ROOM_WORDS = 1 << 20
"""Room for what happens between two looks, to packets that come at the same time as well; 8 MiB."""

_ENDS = frozenset((C.TR_SEEN_SENT, C.TR_SEEN_DROP))

Put = Callable[[int, bytes], None]
"""Gives a frame to the switch as one that came in by a port now."""


def send_packet(
    switch: Switch,
    put: Put,
    port: int,
    data: bytes,
    *,
    most_s: float = MOST_S,
    ended: threading.Event | None = None,
    written: Written = nothing_written,
) -> Trace:
    """Sends a packet into a switch that runs in real time, and waits until it and its copies have left.

    It is a packet as any other: it waits in queues, is counted, changes registers, and goes out on the wire.
    Until it has left the switch runs a second build of its program, which does the same, several times as
    slow; other packets are not told of.

    Args:
        most_s: what is in the switch after this time is not waited for; the trace says so.
        ended: nothing is waited for any longer.
        written: tells what the controller has written; it is asked at the end.

    Raises:
        TraceError: no program, no such port, or the switch has not let the packet in.
        ProgramError: the program cannot be compiled for this.
    """
    program = switch.program
    if program is None:
        raise TraceError("the switch has no program")
    if switch.on_program is not None:
        raise TraceError("the switch tells of every packet already: see its log, or what it counts")
    ended = ended or threading.Event()
    sending = _Sending(switch)
    try:
        sending.watch(told=True)
        # of packets that come between these two lines is told, too; they are left out
        put(port, data)
        sending.watch(told=False)
        ends_s = time.monotonic() + most_s
        while sending.look(port, data) and time.monotonic() < ends_s and switch.program is program:
            if ended.wait(LOOK_S):
                break
    finally:
        sending.close()
    return sending.trace(written)


class _Sending:
    """The records of one packet and its copies."""

    def __init__(self, switch: Switch) -> None:
        assert switch.program is not None
        self._switch = switch
        self._core = load()
        self._glass = glass_of(switch.program)
        self._made = self._glass.room(ROOM_WORDS)
        if not self._made:
            raise TraceError("out of memory")
        self._words = ffi.new("uint64_t[]", ROOM_WORDS)
        self._kept: list[int] = []
        self._first: int | None = None
        self._inside: set[int] = set()
        self._cut = False

    def watch(self, *, told: bool) -> None:
        """From now on of packets that come in is told, or not; of those that are inside it still is."""
        code = self._core.tr_glass_watch(
            self._switch.handle, self._made, self._glass.plain, self._glass.entry, int(told)
        )
        if code < 0:
            raise TraceError("the switch runs another program now")

    def close(self) -> None:
        """The switch goes on with its own program."""
        self._core.tr_glass_watch(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def look(self, port: int, data: bytes) -> bool:
        """Takes what has happened since the last look; whether there is more to come.

        Raises:
            TraceError: the packet did not come in.
        """
        cut = ffi.new("uint32_t[2]")
        n = self._core.tr_glass_take(self._switch.handle, self._made, self._words, ROOM_WORDS, cut, cut + 1)
        for kind, number, time_ps, payload in records(ffi.unpack(self._words, n) if n else []):
            entered = self._first is None and kind == C.TR_SEEN_ENTER
            if entered and payload[0] == port and octets(payload[3:], payload[1]) == data:
                self._first = number
                self._inside.add(number)
            if number not in self._inside:
                continue
            self._kept += (kind, number, time_ps, len(payload), *payload)
            if kind == C.TR_SEEN_COPY:
                self._inside.add(payload[0])
            elif kind in _ENDS:
                self._inside.discard(number)
        # a packet that circles goes on telling for as long as it is followed
        self._cut = bool(cut[0]) or len(self._kept) > MOST_TOLD
        if self._first is None:
            if self._cut:
                raise TraceError("more came at the same time than there is room to tell: send it again")
            raise TraceError(f"port {port}: the switch has not let it in: it is a pause, or there is no room")
        return bool(self._inside) and not self._cut

    def trace(self, written: Written) -> Trace:
        """All that was told."""
        assert self._first is not None
        reader = self._glass.reader(written)
        steps, deep = reader.nested(reader.told(self._kept), self._first)
        name = self._glass.program.model.name
        return Trace(program=name, steps=steps, cut=self._cut or deep, inside=len(self._inside))
