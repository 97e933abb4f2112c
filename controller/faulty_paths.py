# SPDX-License-Identifier: Apache-2.0
"""How a controller handles digests, in real and in virtual time. It passes each digest to the scheme's
Watcher, which decides which paths are withdrawn and restored. It then rewrites the switches of these paths,
and checks again after the hold time, for which a path stays withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Protocol

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.watch import Watcher
from tailrace.topology.paths.shortest import Down


class HoldTimer(Protocol):
    """A clock with timers for hold times."""

    @property
    def now_ns(self) -> int: ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Schedules a callback; now for None or a past time."""
        ...


class PathSuppressor:
    """Withdraws the paths that switches of one network report as faulty."""

    def __init__(
        self,
        clock: HoldTimer,
        watcher: Watcher,
        down: Callable[[], Down],
        rewrite: Callable[[Collection[str]], None],
    ) -> None:
        """Args:
        watcher: decides which paths are withdrawn.
        down: the link ends that the controller considers dead.
        rewrite: writes the intent of some switches.
        """
        self._clock = clock
        self._watcher = watcher
        self._down = down
        self._rewrite = rewrite
        self._wakes: set[int] = set()  # times in ns for which timers are set

    def digest_received(self, digest: DigestMessage) -> None:
        """Handles a digest."""
        if self._watcher.on_digest(digest, self._clock.now_ns, self._down()):
            self._rewrite({digest.switch})
        self._schedule()

    def state_read(
        self, switch: str, program: P4Program, intended: Iterable[p4r.Entity], held: Iterable[p4r.Entity]
    ) -> None:
        """Handles the entities that an earlier controller wrote: paths that it withdrew stay withdrawn for a
        hold time.
        """
        if self._watcher.on_takeover(switch, program, intended, held, self._clock.now_ns, self._down()):
            self._rewrite({switch})
        self._schedule()

    def restore_paths(self) -> Collection[str]:
        """Restores paths whose hold time is over or whose links have recovered; returns their switches, which
        are not rewritten yet.
        """
        restored = self._watcher.reused(self._clock.now_ns, self._down())
        self._schedule()
        return {switch for switch, _ in restored}

    def _hold_expired(self, time_ns: int) -> None:
        """Restores the paths whose hold time is over."""
        self._wakes.discard(time_ns)
        switches = self.restore_paths()
        if switches:
            self._rewrite(switches)

    def _schedule(self) -> None:
        """Sets a timer for the end of the next hold time."""
        next_ns = self._watcher.next_ns(self._clock.now_ns)
        if next_ns is not None and next_ns not in self._wakes:
            self._wakes.add(next_ns)
            self._clock.call_at(next_ns, partial(self._hold_expired, next_ns))
