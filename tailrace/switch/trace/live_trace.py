# SPDX-License-Identifier: Apache-2.0
"""Watching: every packet of a running switch, step by step, as it happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from tailrace.switch.compiler.errors import ProgramError
from tailrace.switch.compiler.program import Program
from tailrace.switch.core.lib import ffi, load
from tailrace.switch.core.switch import Switch
from tailrace.switch.trace.coverage import Coverage, Entry, coverage_of, merged
from tailrace.switch.trace.events import Event
from tailrace.switch.trace.records import Reader
from tailrace.switch.trace.tracing_build import Glass, glass_of

ROOM_WORDS = 1 << 19
"""Room for what happens between two looks; 4 MiB. Of more packets than fit in half of it nothing is told."""

LOOK_S = 0.02
"""Between two looks."""

EntryHit = Callable[[int, int], bool]
"""Whether the entry of a table, by its index, with a handle was ever hit."""

COMPLAIN_S = 1.0
"""Between two complaints."""

Tell = Callable[[Program, int, Event], None]
"""Is told the program, the packet's number and a step; what a copy does comes by the copy's number."""


class Watch:
    """Tells what happens to each packet that comes in from now on, also by the switch's later programs.

    Each of them is compiled a second time, if the cache has it not, before the switch goes on.

    A switch that is watched is several times as slow; one that is not any more is as fast as ever. Close it
    before the switch, or use it in a ``with`` statement.

    Args:
        tell: called by a thread of its own; of one packet the steps come in order. None: what packets use is
            counted, and nothing told.
        complain: is told in one line when something could not be told.
    """

    def __init__(self, switch: Switch, tell: Tell | None, complain: Callable[[str], None]) -> None:
        self._switch = switch
        self._tell = tell
        self._complain = complain
        self._core = load()
        self._made: Any = None
        self._counts: list[int] = []
        self._counted: list[Coverage] = []
        self._words = ffi.new("uint64_t[]", ROOM_WORDS)
        self._cut, self._missed = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        self._untold = 0
        self._complain_s = 0.0
        self._watched: Program | None = None
        self._reader: Reader | None = None
        self._glass: Glass | None = None
        self._ended = threading.Event()
        self._looking = threading.Lock()
        self.look()
        switch.on_program = self.look
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Tells what has happened so far, and watches no longer."""
        self._ended.set()
        self._switch.on_program = None
        self._thread.join()
        self.look()
        self._core.tr_glass_watch(self._switch.handle, ffi.NULL, ffi.NULL, ffi.NULL, 0)

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Tells what has happened since the last look."""
        with self._looking:
            self._take()
            program = self._switch.program
            if program is not self._watched:
                self._keep_counts()
                self._watched = program
                self._follow(program)

    def coverage(
        self, entries: Callable[[Program, EntryHit], Iterable[Entry]] | None = None
    ) -> list[Coverage]:
        """What packets have used of each program so far.

        Args:
            entries: tells the entries of the program that the switch has now, and asks by table and handle
                whether one was hit.
        """
        with self._looking:
            self._keep_counts()
            found = merged(self._counted)
            if self._watched is None or self._glass is None or entries is None:
                return found
            now = coverage_of(
                self._watched, [0] * len(self._glass.uses.all), entries(self._watched, self._hit)
            )
            return merged([*found, now])

    def _hit(self, table: int, handle: int) -> bool:
        return bool(self._core.tr_glass_entry(self._switch.handle, self._made, table, handle))

    def _keep_counts(self) -> None:
        """Adds up what has been used since this was last done."""
        if self._glass is None or self._watched is None:
            return
        n = len(self._glass.uses.all)
        counts = ffi.new("uint64_t[]", n + 1)
        self._core.tr_glass_uses(self._switch.handle, self._made, counts)
        now = ffi.unpack(counts, n) if n else []
        new = [count - before for count, before in zip(now, self._counts, strict=True)]
        self._counts = now
        self._counted = merged([*self._counted, coverage_of(self._watched, new)])

    def _take(self) -> None:
        reader, program = self._reader, self._watched
        if reader is None or program is None:
            return
        n = self._core.tr_glass_take(
            self._switch.handle, self._made, self._words, ROOM_WORDS, self._cut, self._missed
        )
        for number, step in reader.feed(ffi.unpack(self._words, n) if n and self._tell else []):
            assert self._tell is not None
            self._tell(program, number, step)
        if self._cut[0]:
            reader.forget()
        self._untold += self._missed[0] + bool(self._cut[0])
        now_s = time.monotonic()
        if self._untold and now_s >= self._complain_s:
            self._complain(
                f"{self._untold} packets came faster than they can be told; nothing is said of them"
            )
            self._untold, self._complain_s = 0, now_s + COMPLAIN_S

    def _follow(self, program: Program | None) -> None:
        self._reader = self._glass = None
        if program is None:
            return
        try:
            glass = glass_of(program)
        except ProgramError as error:
            self._complain(f"what happens to packets cannot be told: {error}")
            return
        made = glass.room(ROOM_WORDS)
        if not made:
            self._complain("what happens to packets cannot be told: out of memory")
            return
        told = int(self._tell is not None)
        if self._core.tr_glass_watch(self._switch.handle, made, glass.plain, glass.entry, told) < 0:
            self._watched = None  # it has another program already: again at the next look
            return
        self._made = made
        self._counts = [0] * len(glass.uses.all)
        # the code must not be unloaded while the switch runs it
        self._glass, self._reader = glass, glass.reader()
