# SPDX-License-Identifier: Apache-2.0
"""Packet injection: a running switch receives a packet, and its processing is traced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.dry_run import MOST_RECORD_FIELDS, TraceError
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import DescribeEntity, no_description, octets, records
from tailrace.switch.trace.tracing_build import cached_build

MOST_S = 2.0
"""After this time a packet or copy still in the switch is no longer traced."""

POLL_S = 0.005
"""Between two polls."""

BUFFER_FIELDS = 1 << 20
"""Size of the record buffer between two polls, for packets that arrive at the same time as well: 8 MiB."""

_ENDS = frozenset((C.TR_RECORD_SENT, C.TR_RECORD_DROP))

InjectFrame = Callable[[int, bytes], None]
"""Injects a frame into the switch, as received now on a port."""


def send_packet(
    switch: V1ModelSwitch,
    inject: InjectFrame,
    port: int,
    data: bytes,
    *,
    most_s: float = MOST_S,
    ended: threading.Event | None = None,
    describe: DescribeEntity = no_description,
) -> Trace:
    """Injects a packet into a switch that runs in real time, and waits until it and its copies have left.

    The packet is a real one: it waits in queues, is counted, changes registers, and leaves on the wire.
    Until then the switch runs the tracing build of its program, which is several times as slow. Other packets
    are not traced.

    Args:
        most_s: limit of the wait; the trace counts packets that are still in the switch then.
        ended: ends the wait.
        describe: names entries, members and groups as the controller wrote them; called at the end.

    Raises:
        TraceError: no program, no such port, or the switch has not let the packet in.
        CompilerError: the program cannot be compiled for this.
    """
    program = switch.program
    if program is None:
        raise TraceError("the switch has no program")
    if switch.on_program is not None:
        raise TraceError("the switch traces every packet already: see its log or its coverage")
    ended = ended or threading.Event()
    injection = _PacketTrace(switch)
    try:
        injection.attach(recording=True)
        # packets that arrive between these two lines are recorded, too, and left out
        inject(port, data)
        injection.attach(recording=False)
        ends_s = time.monotonic() + most_s
        while injection.poll(port, data) and time.monotonic() < ends_s and switch.program is program:
            if ended.wait(POLL_S):
                break
    finally:
        injection.close()
    return injection.trace(describe)


class _PacketTrace:
    """The records of one packet and its copies."""

    def __init__(self, switch: V1ModelSwitch) -> None:
        assert switch.program is not None
        self._switch = switch
        self._core = load()
        self._build = cached_build(switch.program)
        self._tracer = self._build.new_tracer(BUFFER_FIELDS)
        if not self._tracer:
            raise TraceError("out of memory")
        self._buffer = ffi.new("uint64_t[]", BUFFER_FIELDS)
        self._records: list[int] = []
        self._first: int | None = None
        self._inside: set[int] = set()
        self._cut = False

    def attach(self, *, recording: bool) -> None:
        """From now on packets that arrive are recorded, or not; those in the switch still are."""
        code = self._core.tr_tracer_attach(
            self._switch.handle, self._tracer, self._build.regular, self._build.entry, int(recording)
        )
        if code < 0:
            raise TraceError("the switch runs another program now")

    def close(self) -> None:
        """The switch runs the regular build again."""
        self._core.tr_tracer_attach(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def poll(self, port: int, data: bytes) -> bool:
        """Takes the records since the last poll; whether there are more to come.

        Raises:
            TraceError: the switch did not accept the packet.
        """
        cut = ffi.new("uint32_t[2]")
        n = self._core.tr_tracer_take(
            self._switch.handle, self._tracer, self._buffer, BUFFER_FIELDS, cut, cut + 1
        )
        for kind, number, time_ps, payload in records(ffi.unpack(self._buffer, n) if n else []):
            entered = self._first is None and kind == C.TR_RECORD_ENTER
            if entered and payload[0] == port and octets(payload[3:], payload[1]) == data:
                self._first = number
                self._inside.add(number)
            if number not in self._inside:
                continue
            self._records += (kind, number, time_ps, len(payload), *payload)
            if kind == C.TR_RECORD_COPY:
                self._inside.add(payload[0])
            elif kind in _ENDS:
                self._inside.discard(number)
        # a packet that recirculates for ever is recorded for as long
        self._cut = bool(cut[0]) or len(self._records) > MOST_RECORD_FIELDS
        if self._first is None:
            if self._cut:
                raise TraceError("too many packets arrived at the same time: send it again")
            raise TraceError(f"port {port}: the switch has not let it in: it is a pause, or there is no room")
        return bool(self._inside) and not self._cut

    def trace(self, describe: DescribeEntity) -> Trace:
        """The trace so far."""
        assert self._first is not None
        reader = self._build.reader(describe)
        steps, deep = reader.nest(reader.read(self._records), self._first)
        name = self._build.program.model.name
        return Trace(program=name, steps=steps, cut=self._cut or deep, inside=len(self._inside))
