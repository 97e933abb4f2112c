# SPDX-License-Identifier: Apache-2.0
"""Reads the trace records that a switch makes in the tracing build of its program (tr_tracer.h), which is the
program compiled with calls that record the steps of packets:

    watcher = PacketWatcher(switch, size)
    watcher.attach()                    # the switch now runs the tracing build: several times as slow
    for record in watcher.take(): ...   # the records since the last call
    watcher.detach()

    watcher.dry_run(port, data, now_ps) # the records of one packet, without a change to the switch

All traces are made from these records.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tailrace.spec.errors import Error
from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core.lib import C, ffi, load
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.events import Trace
from tailrace.switch.trace.field_layout import FieldLayout
from tailrace.switch.trace.records import (
    DescribeEntity,
    NumberedEvents,
    RecordReader,
    TraceRecord,
    nest,
    no_description,
    parse_records,
)

_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)

_PROBLEMS = {
    C.TR_EINVAL: "the switch runs another program now",
    C.TR_ERANGE: "no such port, or the packet is too long",
    C.TR_ENOMEM: "out of memory",
}


class TraceError(Error):
    """A packet cannot be traced. The message is one line for the user."""


class PacketWatcher:
    """A tracer of a switch's program; it can be used until the switch gets another program.

    program: the traced program
    cut: whether the buffer overflowed before the last `take` or in the last dry run, so records are missing
    missed: how many packets were not recorded at all before the last `take`
    """

    def __init__(self, switch: V1ModelSwitch, size: int, describe: DescribeEntity = no_description) -> None:
        """Args:
            size: the size of the record buffer in 64-bit fields.
            describe: describes entries, members and groups as the controller wrote them.

        Raises:
            TraceError: the switch has no program, or memory is exhausted.
            CompilerError: the tracing build cannot be compiled.
        """
        if switch.program is None:
            raise TraceError("the switch has no program")
        self.program, self.cut, self.missed = switch.program, False, 0
        self._switch, self._size, self._core, self._describe = switch, size, load(), describe
        # this reference keeps the code loaded while the switch runs it
        self._build = cached_build(switch.program)
        self._tracer = self._build.new_tracer(size)
        if not self._tracer:
            raise TraceError("out of memory")
        self._buffer: Any = None
        self._counts = ffi.new("uint32_t[2]")

    def attach(self, *, recording: bool = True) -> None:
        """Starts counting coverage; if `recording`, also records packets that arrive from now on.

        Raises:
            TraceError: the switch runs another program.
        """
        code = self._core.tr_tracer_attach(
            self._switch.handle, self._tracer, self._build.regular, self._build.tracing, int(recording)
        )
        if code < 0:
            raise TraceError(_PROBLEMS[code])

    def select(self, arrivals: Sequence[tuple[int, int]]) -> None:
        """Selects packets by (time in ps, port) of arrival: they are recorded in full, all others in brief
        (TR_TRACE_BRIEF). Raises TraceError if memory is exhausted.
        """
        times, ports = [list(each) for each in zip(*arrivals, strict=True)] or [[], []]
        code = self._core.tr_tracer_select(self._switch.handle, self._tracer, times, ports, len(times))
        if code != C.TR_OK:
            raise TraceError(_PROBLEMS[code])

    def detach(self) -> None:
        """Lets the switch run its regular build again; must be called before the switch is closed."""
        self._core.tr_tracer_attach(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def take(self) -> list[TraceRecord]:
        """The records since the last call, or of the last dry run."""
        if self._buffer is None:
            self._buffer = _new_uncleared("uint64_t[]", self._size)
        cut, missed = self._counts, self._counts + 1
        n = self._core.tr_tracer_take(
            self._switch.handle, self._tracer, self._buffer, self._size, cut, missed
        )
        self.cut, self.missed = bool(cut[0]), missed[0]
        return list(parse_records(ffi.unpack(self._buffer, n) if n else []))

    def dry_run(self, port: int, data: bytes, now_ps: int, choices: Sequence[int] = ()) -> list[TraceRecord]:
        """The records of a packet as if it arrived now; the switch's state does not change.

        Args:
            now_ps: the time of arrival, if it is later than the switch's present time.
            choices: the first choices, in order (dry_run.py).

        Raises:
            TraceError: the switch has no such port or has another program, or memory is exhausted.
        """
        try:
            code = self._core.tr_dry_run(
                *(self._switch.handle, self._tracer, self._build.regular, self._build.tracing),
                *(port, data, len(data), now_ps, list(choices), len(choices)),
            )
        except OverflowError:
            code = C.TR_ERANGE
        if code < 0:
            raise TraceError(f"port {port}: {_PROBLEMS[code]}")
        return self.take()

    # ---- events from records ----

    def reader(self) -> RecordReader:
        """A new reader of the program's records."""
        return RecordReader(self.program.model, self._build.layout, self._describe)

    def events(self, records: Iterable[TraceRecord]) -> NumberedEvents:
        """The events in `records`, which must begin with the arrival of each packet."""
        return list(self.reader().feed(records))

    def trace(self, events: NumberedEvents, packet: int = 1, *, cut: bool = False, inside: int = 0) -> Trace:
        """The trace of one packet and its copies; `inside`: how many of them are still in the switch."""
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


CACHE_SIZE = 16
"""How many tracing builds this process keeps."""


def cached_build(program: SwitchProgram) -> TracingBuild:
    """The tracing build of a program, cached in this process.

    Raises:
        CompilerError: the tracing build cannot be compiled.
    """
    key = (program.library, program.sha256, program.source)
    build = _cache.pop(key, None) or TracingBuild(program)
    _cache[key] = build  # ordered by last use, the oldest first
    while len(_cache) > CACHE_SIZE:
        del _cache[next(iter(_cache))]
    return build


class TracingBuild:
    """A program compiled with calls that record the steps of packets, and the layout of its fields.

    Raises:
        CompilerError: the tracing build cannot be compiled.
    """

    def __init__(self, program: SwitchProgram) -> None:
        self.program = program.tracing_build()
        self._code = self.program.load()
        self.points = CoveragePoints(program.model)
        # the build that switches run; the dynamic loader loads a file only once, so this is the same code
        self._regular_code = program.load()
        self.regular = _symbol(self._regular_code, "tr_program *", "tr_program_entry")
        self.tracing = _symbol(self._code, "tr_program *", "tr_program_entry")
        self.layout = FieldLayout(program.model, _symbol(self._code, "tr_place *", "tr_program_places"))

    def new_tracer(self, size: int) -> Any:
        """A tracer whose buffer has `size` 64-bit fields, freed with its last reference; NULL: no memory."""
        core = load()
        tracer = core.tr_tracer_new(size, len(self.points.all), len(self.program.model.tables))
        return ffi.gc(tracer, core.tr_tracer_free)


_cache: dict[tuple[Path, str, str], TracingBuild] = {}


def _symbol(code: ctypes.CDLL, kind: str, name: str) -> object:
    return ffi.cast(kind, ctypes.addressof(ctypes.c_char.in_dll(code, name)))
