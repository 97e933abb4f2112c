# SPDX-License-Identifier: Apache-2.0
"""What a controller does about digests, on whichever clock it runs: it has the scheme's Watcher look at them,
rewrites the switches whose paths go out or come back, and looks again when a hold time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Protocol

from finsy.proto import p4r

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.watch import Watcher
from tailrace.topology.paths.shortest import Down


class HoldTimer(Protocol):
    """Time, and being called back."""

    @property
    def now_ns(self) -> int: ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls back at a time; now where it is None or past."""
        ...


class PathSuppressor:
    """Keeps the paths of one network out that its switches tell to be faulty."""

    def __init__(
        self,
        clock: HoldTimer,
        watcher: Watcher,
        down: Callable[[], Down],
        rewrite: Callable[[Collection[str]], None],
    ) -> None:
        """Args:
        watcher: knows what is to be done.
        down: the ends of links that the controller takes for dead now.
        rewrite: makes some switches hold what they should.
        """
        self._clock = clock
        self._watcher = watcher
        self._down = down
        self._rewrite = rewrite
        self._wakes: set[int] = set()

    def heard(self, digest: DigestMessage) -> None:
        """A switch has sent a digest."""
        if self._watcher.on_digest(digest, self._clock.now_ns, self._down()):
            self._rewrite({digest.switch})
        self._plan()

    def found(
        self, switch: str, program: P4Program, intended: Iterable[p4r.Entity], held: Iterable[p4r.Entity]
    ) -> None:
        """A switch was found with what an earlier controller left it; what that had left out stays so for a
        while.
        """
        if self._watcher.on_takeover(switch, program, intended, held, self._clock.now_ns, self._down()):
            self._rewrite({switch})
        self._plan()

    def look(self) -> Collection[str]:
        """Gives back the paths that can be, when links have come back; the switches that they are of, which
        are not rewritten yet.
        """
        back = self._watcher.reused(self._clock.now_ns, self._down())
        self._plan()
        return {switch for switch, _ in back}

    def _wake(self, time_ns: int) -> None:
        """A hold time is over."""
        self._wakes.discard(time_ns)
        switches = self.look()
        if switches:
            self._rewrite(switches)

    def _plan(self) -> None:
        """Has the next end of a hold time looked at."""
        next_ns = self._watcher.next_ns(self._clock.now_ns)
        if next_ns is not None and next_ns not in self._wakes:
            self._wakes.add(next_ns)
            self._clock.call_at(next_ns, partial(self._wake, next_ns))
