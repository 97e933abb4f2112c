# SPDX-License-Identifier: Apache-2.0
"""Live trace: every packet of a running switch, step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core.lib import ffi, load
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.coverage import Coverage, EntryCoverage, coverage_of, merged
from tailrace.switch.trace.events import Event
from tailrace.switch.trace.records import RecordReader
from tailrace.switch.trace.tracing_build import TracingBuild, cached_build

BUFFER_FIELDS = 1 << 19
"""Size of the record buffer between two polls: 4 MiB. Packets beyond half of it are not traced."""

POLL_S = 0.02
"""Between two polls."""

EntryHit = Callable[[int, int], bool]
"""Whether a table entry, by table index and handle, was ever hit."""

WARN_S = 1.0
"""Between two warnings."""

EventCallback = Callable[[SwitchProgram, int, Event], None]
"""Receives the program, the packet's number and an event; a copy has a number of its own."""


class LiveTracer:
    """Traces each packet that arrives from now on, also in the switch's later programs.

    Each program is compiled a second time, unless cached, before the switch goes on. Meanwhile the switch is
    several times as slow. Close the tracer before the switch, or use it in a ``with`` statement.

    Args:
        on_event: called by a thread of its own, in order for one packet. None: only coverage is counted.
        warn: receives a line when packets could not be traced.
    """

    def __init__(
        self, switch: V1ModelSwitch, on_event: EventCallback | None, warn: Callable[[str], None]
    ) -> None:
        self._switch = switch
        self._on_event = on_event
        self._warn = warn
        self._core = load()
        self._tracer: Any = None
        self._counts: list[int] = []
        self._counted: list[Coverage] = []
        self._buffer = ffi.new("uint64_t[]", BUFFER_FIELDS)
        self._cut, self._missed = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        self._untraced = 0
        self._warn_s = 0.0
        self._program: SwitchProgram | None = None
        self._reader: RecordReader | None = None
        self._build: TracingBuild | None = None
        self._ended = threading.Event()
        self._polling = threading.Lock()
        self.poll()
        switch.on_program = self.poll
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> LiveTracer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Reports the last events, and detaches from the switch."""
        self._ended.set()
        self._switch.on_program = None
        self._thread.join()
        self.poll()
        self._core.tr_tracer_attach(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def _run(self) -> None:
        while not self._ended.wait(POLL_S):
            self.poll()

    def poll(self) -> None:
        """Reports the events since the last poll."""
        with self._polling:
            self._take()
            program = self._switch.program
            if program is not self._program:
                self._keep_counts()
                self._program = program
                self._attach(program)

    def coverage(
        self, entries: Callable[[SwitchProgram, EntryHit], Iterable[EntryCoverage]] | None = None
    ) -> list[Coverage]:
        """The coverage of each program so far.

        Args:
            entries: lists the entries of the present program, given a test whether an entry was hit.
        """
        with self._polling:
            self._keep_counts()
            coverages = merged(self._counted)
            if self._program is None or self._build is None or entries is None:
                return coverages
            now = coverage_of(
                self._program, [0] * len(self._build.points.all), entries(self._program, self._hit)
            )
            return merged([*coverages, now])

    def _hit(self, table: int, handle: int) -> bool:
        return bool(self._core.tr_tracer_entry_hit(self._switch.handle, self._tracer, table, handle))

    def _keep_counts(self) -> None:
        """Adds the coverage since this was last done."""
        if self._build is None or self._program is None:
            return
        n = len(self._build.points.all)
        counts = ffi.new("uint64_t[]", n + 1)
        self._core.tr_tracer_coverage(self._switch.handle, self._tracer, counts)
        now = ffi.unpack(counts, n) if n else []
        new = [count - before for count, before in zip(now, self._counts, strict=True)]
        self._counts = now
        self._counted = merged([*self._counted, coverage_of(self._program, new)])

    def _take(self) -> None:
        reader, program = self._reader, self._program
        if reader is None or program is None:
            return
        n = self._core.tr_tracer_take(
            self._switch.handle, self._tracer, self._buffer, BUFFER_FIELDS, self._cut, self._missed
        )
        for number, step in reader.feed(ffi.unpack(self._buffer, n) if n and self._on_event else []):
            assert self._on_event is not None
            self._on_event(program, number, step)
        if self._cut[0]:
            reader.forget()
        self._untraced += self._missed[0] + bool(self._cut[0])
        now_s = time.monotonic()
        if self._untraced and now_s >= self._warn_s:
            self._warn(f"{self._untraced} packets arrived faster than they can be traced; they are left out")
            self._untraced, self._warn_s = 0, now_s + WARN_S

    def _attach(self, program: SwitchProgram | None) -> None:
        self._reader = self._build = None
        if program is None:
            return
        try:
            build = cached_build(program)
        except CompilerError as error:
            self._warn(f"packets cannot be traced: {error}")
            return
        tracer = build.new_tracer(BUFFER_FIELDS)
        if not tracer:
            self._warn("packets cannot be traced: out of memory")
            return
        attach, recording = self._core.tr_tracer_attach, int(self._on_event is not None)
        if attach(self._switch.handle, tracer, build.regular, build.entry, recording) < 0:
            self._program = None  # the switch has another program already: the next poll attaches again
            return
        self._tracer = tracer
        self._counts = [0] * len(build.points.all)
        # the code must not be unloaded while the switch runs it
        self._build, self._reader = build, build.reader()
