# SPDX-License-Identifier: Apache-2.0
"""Controller-side reaction to digests of switches: events, and ports that a scheme suppresses for a while.

The time is an argument, so the same code runs in real and virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import asdict

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.events import Event
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.spec.units import format_time
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down

LinkEnd = tuple[str, int]
"""A switch and its port: one end of a link."""

_STORMS = {"pfc_storm_t": "pfc-storm", "pfc_restored_t": "pfc-restored"}
STORM_DIGESTS = frozenset(_STORMS)
"""Digests of PFC storms, in which a neighbour pauses a port for too long (p4src/pfc/watch.p4,
tailrace/switch/core/c/tr_watch.c); a controller only logs them."""

_EVENT_TEXTS = {
    "pfc-storm": "{neighbour} has paused its port for too long: PFC storm",
    "pfc-restored": "{neighbour} asks for no pauses any more: PFC storm is over",
}


class SuppressedPath(msgspec.Struct, frozen=True):
    """A port whose path is suppressed (RFC 2439) since `since_ns`, and until `until_ns` at the earliest."""

    end: LinkEnd
    since_ns: int
    until_ns: int


Notify = Callable[[Event], None]
FormatTime = Callable[[int], str]


class Watcher:
    """Reports digests as events and suppresses no port: the default of schemes."""

    def __init__(self, topology: Topology, notify: Notify, time_text: FormatTime = format_time) -> None:
        """`notify` receives events; `time_text` formats a time for people."""
        self.topology = topology
        self.notify = notify
        self.time_text = time_text

    def on_digest(self, digest: DigestMessage, now_ns: int, down: Down = frozenset()) -> bool:  # noqa: ARG002
        """Handles a digest of a switch; returns whether it suppressed another port.

        Args:
            digest: a digest of any kind.
            now_ns: the current time.
            down: the ends of dead links.
        """
        self.notify(storm_of(digest, self.topology, now_ns) or _of_digest(digest, now_ns))
        return False

    def on_takeover(
        self,
        switch: str,
        program: P4Program,
        intended: Iterable[p4r.Entity],
        held: Iterable[p4r.Entity],
        now_ns: int,
        down: Down = frozenset(),
    ) -> bool:
        """Compares `intended`, the entries that a new controller wants, with `held`, the entries that the
        switch has; returns whether it suppressed further ports.
        """
        del switch, program, intended, held, now_ns, down
        return False

    def reused(self, now_ns: int, down: Down = frozenset()) -> list[LinkEnd]:  # noqa: ARG002
        """The ports that may be used again, after time has passed or links have changed (RFC 2439: reuse)."""
        return []

    @property
    def suppressed_ports(self) -> frozenset[LinkEnd]:
        """The ports of suppressed paths, as (switch, port)."""
        return frozenset(path.end for path in self.suppressed)

    @property
    def suppressed(self) -> list[SuppressedPath]:
        """The suppressed paths, in order of switch and port."""
        return []

    def next_ns(self, now_ns: int) -> int | None:  # noqa: ARG002
        """The time at which the next port may be used again; None: nothing changes by time alone."""
        return None


def _of_digest(digest: DigestMessage, now_ns: int) -> Event:
    """The event of a digest to which no scheme reacts, or of an alert for a port that leads to no switch."""
    fields = " ".join(f"{name}={value}" for name, value in digest.fields.items())
    facts = {**asdict(digest), "time_ns": now_ns}
    return Event("digest", digest.switch, f"{digest.switch}: digest {digest.name}: {fields}", facts)


def storm_of(digest: DigestMessage, topology: Topology, now_ns: int) -> Event | None:
    """The event of a digest about a storm; None for other digests."""
    kind = _STORMS.get(digest.name)
    if kind is None:
        return None
    port, priority = digest.fields["port"], digest.fields["priority"]
    peer = topology.ports_of(digest.switch).get(port)
    neighbour = "nobody" if peer is None else peer.name
    facts = {
        "time_ns": digest.time_ns or now_ns,
        "switch": digest.switch,
        "port": port,
        "priority": priority,
        "neighbour": neighbour,
    }
    event_text = _EVENT_TEXTS[kind].format(neighbour=neighbour)
    text = f"{digest.switch}: {event_text}; port={port} priority={priority}"
    return Event(kind, f"{digest.switch}-{neighbour}", text, facts)
