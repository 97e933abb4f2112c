# SPDX-License-Identifier: Apache-2.0
"""What a controller does about digests of switches: it tells of them, and a scheme may have it leave ports
out for a while. The time is an argument, so the same code runs on every clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from finsy.proto import p4r

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.events import Event
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.blocks.storms import storm_of
from tailrace.spec.units import format_time
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down

End = tuple[str, int]
"""A port of a switch: the way from there to its neighbour."""


@dataclass(frozen=True, slots=True)
class SuppressedPath:
    """A port whose path is suppressed (RFC 2439): since when, and until when at least."""

    end: End
    since_ns: int
    until_ns: int


Tell = Callable[[Event], None]
When = Callable[[int], str]


class Watcher:
    """Tells of digests, and asks for nothing: what a scheme has that says nothing else."""

    def __init__(self, topology: Topology, tell: Tell, when: When = format_time) -> None:
        """`tell` is told what happens; `when` writes a time for people."""
        self.topology = topology
        self.tell = tell
        self.when = when

    def heard(self, digest: DigestMessage, now_ns: int, down: Down = frozenset()) -> bool:  # noqa: ARG002
        """A switch has sent a digest; whether another port is suppressed now.

        Args:
            down: the ends of links that are dead.
        """
        self.tell(storm_of(digest, self.topology, now_ns) or _of_digest(digest, now_ns))
        return False

    def found(
        self,
        switch: str,
        program: P4Program,
        intended: Iterable[p4r.Entity],
        held: Iterable[p4r.Entity],
        now_ns: int,
        down: Down = frozenset(),
    ) -> bool:
        """A switch was found with what an earlier controller left it; whether others are suppressed now."""
        del switch, program, intended, held, now_ns, down
        return False

    def passed(self, now_ns: int, down: Down = frozenset()) -> list[End]:  # noqa: ARG002
        """Time has passed, or links have changed: the ports that are given back."""
        return []

    @property
    def ends(self) -> frozenset[End]:
        """The ports, with their switches, that are not to be used."""
        return frozenset(path.end for path in self.suppressed)

    @property
    def suppressed(self) -> list[SuppressedPath]:
        """The same, by switch and port."""
        return []

    def next_ns(self, now_ns: int) -> int | None:  # noqa: ARG002
        """When a port may come back next; None: nothing changes with time alone."""
        return None


def _of_digest(digest: DigestMessage, now_ns: int) -> Event:
    """Of a digest that asks for nothing, or an alert of a port that leads to no switch."""
    said = " ".join(f"{name}={value}" for name, value in digest.fields.items())
    facts = {**asdict(digest), "time_ns": now_ns}
    return Event("digest", digest.switch, f"{digest.switch}: digest {digest.name}: {said}", facts)
