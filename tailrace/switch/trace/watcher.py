# SPDX-License-Identifier: Apache-2.0
"""Watches a switch by the core's trace hooks (tr_tracer.h), and yields its records:

    watcher = PacketWatcher(switch, size)
    watcher.attach()                    # the switch runs the tracing build: several times as slow
    for record in watcher.take(): ...   # since the last call
    watcher.detach()

    watcher.dry_run(port, data, now_ps) # of one packet, without a change to the switch

All traces are made of these records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tailrace.spec.errors import Error
from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.records import (
    DescribeEntity,
    NumberedEvents,
    RecordReader,
    TraceRecord,
    nest,
    no_description,
    parse_records,
)
from tailrace.switch.trace.tracing_build import cached_build

_PROBLEMS = {
    C.TR_EINVAL: "the switch runs another program now",
    C.TR_ERANGE: "no such port, or the packet is too long",
    C.TR_ENOMEM: "out of memory",
}


class TraceError(Error):
    """A packet cannot be traced; one line for the user."""


class PacketWatcher:
    """A tracer of the program that a switch runs.

    program: that program
    cut: whether there was no room for some of the last records
    missed: packets that were not recorded before the last `take`
    """

    def __init__(self, switch: V1ModelSwitch, size: int) -> None:
        """`size`: room for so many 64-bit fields of records.

        Raises:
            TraceError: the switch has no program, or there is no memory.
            CompilerError: the tracing build cannot be compiled.
        """
        if switch.program is None:
            raise TraceError("the switch has no program")
        self.program, self.cut, self.missed = switch.program, False, 0
        self._switch, self._size, self._core = switch, size, load()
        # kept: its code must not be unloaded while the switch runs it
        self._build = cached_build(switch.program)
        self._tracer = self._build.new_tracer(size)
        if not self._tracer:
            raise TraceError("out of memory")
        self._buffer: Any = None
        self._counts = ffi.new("uint32_t[2]")

    def attach(self, *, recording: bool = True) -> None:
        """From now on coverage is counted, and packets that arrive are recorded, or not any more.

        Raises:
            TraceError: the switch runs another program.
        """
        code = self._core.tr_tracer_attach(
            self._switch.handle, self._tracer, self._build.regular, self._build.entry, int(recording)
        )
        if code < 0:
            raise TraceError(_PROBLEMS[code])

    def select(self, arrivals: Sequence[tuple[int, int]]) -> None:
        """Packets that arrive at these times in ps, by these ports, are recorded in full, others in brief
        (TR_TRACE_BRIEF). Raises TraceError.
        """
        times, ports = [list(each) for each in zip(*arrivals, strict=True)] or [[], []]
        code = self._core.tr_tracer_select(self._switch.handle, self._tracer, times, ports, len(times))
        if code != C.TR_OK:
            raise TraceError(_PROBLEMS[code])

    def detach(self) -> None:
        """The switch runs its regular build again; to be called before the switch is closed."""
        self._core.tr_tracer_attach(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def take(self) -> list[TraceRecord]:
        """The records since the last call."""
        if self._buffer is None:
            self._buffer = ffi.new("uint64_t[]", self._size)
        cut, missed = self._counts, self._counts + 1
        n = self._core.tr_tracer_take(
            self._switch.handle, self._tracer, self._buffer, self._size, cut, missed
        )
        self.cut, self.missed = bool(cut[0]), missed[0]
        return list(parse_records(ffi.unpack(self._buffer, n) if n else []))

    def dry_run(self, port: int, data: bytes, now_ps: int, choices: Sequence[int] = ()) -> list[TraceRecord]:
        """The records of a packet as if it arrived; nothing of the switch changes.

        Args:
            now_ps: the time, if it is later than the switch's own.
            choices: outcomes of the first choices, in order.

        Raises:
            TraceError: no such port, another program, or no memory.
        """
        try:
            code = self._core.tr_dry_run(
                *(self._switch.handle, self._tracer, self._build.regular, self._build.entry),
                *(port, data, len(data), now_ps, list(choices), len(choices)),
            )
        except OverflowError:
            code = C.TR_ERANGE
        if code < 0:
            raise TraceError(f"port {port}: {_PROBLEMS[code]}")
        buffer = self._core.tr_tracer_records(self._tracer, self._counts, self._counts + 1)
        n, self.cut = self._counts[0], bool(self._counts[1])
        return list(parse_records(ffi.unpack(buffer, n) if n else []))

    # ---- what records say ----

    def reader(self, describe: DescribeEntity = no_description) -> RecordReader:
        """A reader of the records."""
        return self._build.reader(describe)

    def events(
        self, records: Iterable[TraceRecord], describe: DescribeEntity = no_description
    ) -> NumberedEvents:
        """The events of some packets, from their arrival on."""
        return list(self.reader(describe).feed(records))

    def trace(self, events: NumberedEvents, packet: int = 1, *, cut: bool = False, inside: int = 0) -> Trace:
        """The trace of one packet, with its copies."""
        steps, too_deep = nest(events, packet)
        return Trace(program=self.program.model.name, steps=steps, cut=cut or too_deep, inside=inside)

    # ---- coverage ----

    def coverage(self) -> list[int]:
        """The count of each coverage point."""
        n = len(self._build.points.all)
        counts = ffi.new("uint64_t[]", n + 1)
        self._core.tr_tracer_coverage(self._switch.handle, self._tracer, counts)
        return list(ffi.unpack(counts, n)) if n else []

    def entry_hit(self, table: int, handle: int) -> bool:
        """Whether a table entry was ever hit."""
        return bool(self._core.tr_tracer_entry_hit(self._switch.handle, self._tracer, table, handle))
