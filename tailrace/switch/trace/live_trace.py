# SPDX-License-Identifier: Apache-2.0
"""Live trace: reports what a running switch does to every packet, step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.trace.coverage import Coverage, EntryCoverage, coverage_of, merged
from tailrace.switch.trace.events import Event
from tailrace.switch.trace.records import RecordReader
from tailrace.switch.trace.watcher import PacketWatcher, TraceError

BUFFER_FIELDS = 1 << 19
"""Size of the record buffer, read at each poll: 4 MiB. While it is half full, new packets are not traced."""

POLL_S = 0.02
"""Time between two polls."""

EntryHit = Callable[[int, int], bool]
"""Takes a table's index and an entry's handle; returns whether the entry was ever hit."""

ListEntries = Callable[[EntryHit], Iterable[EntryCoverage]]
"""Lists the table entries of the present program, each with whether it was ever hit."""

WARN_S = 1.0
"""Shortest time between two warnings."""

EventCallback = Callable[[SwitchProgram, int, Event], None]
"""Receives the program, the packet's number and an event; a copy has another number."""


class LiveTracer:
    """Traces each packet that arrives from now on, also in the switch's later programs.

    Loading a program into the switch waits until the tracing build is compiled, unless it is cached. While
    the tracer is attached, the switch takes several times as long for each packet. Close the tracer before
    the switch, or use it in a ``with`` statement.

    Args:
        on_event: called in the tracer's thread; events of one packet come in order. None: only coverage is
            counted.
        warn: called with a line when packets could not be traced.
    """

    def __init__(
        self, switch: V1ModelSwitch, on_event: EventCallback | None, warn: Callable[[str], None]
    ) -> None:
        self._switch, self._on_event, self._warn = switch, on_event, warn
        self._watcher: PacketWatcher | None = None
        self._program: SwitchProgram | None = None
        self._reader: RecordReader | None = None
        self._finished: list[Coverage] = []
        """Coverage of the switch's earlier programs."""
        self._untraced, self._warn_s = 0, 0.0
        self._ended = threading.Event()
        self._polling = threading.RLock()
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
        if self._watcher is not None:
            self._watcher.detach()

    def _run(self) -> None:
        while not self._ended.wait(POLL_S):
            self.poll()

    def poll(self) -> None:
        """Reports the events since the last poll."""
        with self._polling:
            self._take()
            if self._switch.program is not self._program:
                self._finished = self.coverage()
                self._attach()

    def coverage(self, entries: ListEntries | None = None) -> list[Coverage]:
        """The coverage of each program so far.

        Args:
            entries: lists the present program's entries.
        """
        with self._polling:
            watcher = self._watcher
            if watcher is None:
                return self._finished
            listed = entries(watcher.entry_hit) if entries is not None else ()
            return merged([*self._finished, coverage_of(watcher.program, watcher.coverage(), listed)])

    def _take(self) -> None:
        if self._watcher is None or self._reader is None:
            return
        records = self._watcher.take()
        if self._on_event is not None:
            for number, event in self._reader.feed(records):
                self._on_event(self._watcher.program, number, event)
        if self._watcher.cut:
            self._reader.forget()
        self._untraced += self._watcher.missed + self._watcher.cut  # lost records count as one packet
        now_s = time.monotonic()
        if self._untraced and now_s >= self._warn_s:
            self._warn(f"{self._untraced} packets were not traced: they arrived too fast")
            self._untraced, self._warn_s = 0, now_s + WARN_S

    def _attach(self) -> None:
        self._program = self._switch.program
        self._watcher = self._reader = None
        if self._program is None:
            return
        try:
            watcher = PacketWatcher(self._switch, BUFFER_FIELDS)
        except (CompilerError, TraceError) as error:
            self._warn(f"packets cannot be traced: {error}")
            return
        try:
            watcher.attach(recording=self._on_event is not None)
        except TraceError:
            self._program = None  # the switch has another program already: the next poll attaches again
            return
        self._watcher, self._reader = watcher, watcher.reader()
