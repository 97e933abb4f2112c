# SPDX-License-Identifier: Apache-2.0
"""Paths that a switch found faulty (RLB §IV-B.2, Algorithm 2): suppression and reuse. Without a clock.

    alert of a path in use     -> out, for the hold time; twice as long each time it happens again
    hold time over, link alive -> back in use; Algorithm 2 goes on to watch it
    in use without an alert    -> each hold time that it stays so takes one doubling back

A silent fault shows nowhere but in the data that meets it, so a path can be tried only by using it; what
bounds the harm is that each failed trial doubles the time to the next one, as route-flap damping does
(RFC 2439). A link whose probes are lost (controller.linkwatch) is not tried before they come in again.

DEVIATION: the paper takes paths out and says nothing of when they come back.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.target import Target
from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.topology import Topology

DIGEST = "failure_alert_t"
"""The digest of p4src/rlb/failure.p4."""

MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class Alert:
    """What a switch says of one of its ports.

    neighbour: the switch behind the port, which is the one that is taken to have failed (Algorithm 2 l. 8)
    mean: recirculations a packet, Rc_avg; delay_ns: t_rc
    """

    switch: str
    port: int
    neighbour: str
    mean: float
    delay_ns: int

    @property
    def end(self) -> LinkEnd:
        """The way that is faulty."""
        return self.switch, self.port

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to log."""
        return {
            "switch": self.switch,
            "port": self.port,
            "neighbour": self.neighbour,
            "mean_recirculations": round(self.mean, 3),
            "t_rc_ns": self.delay_ns,
        }


def alert_of(digest: DigestMessage, topology: Topology, target: Target) -> Alert | None:
    """The alert that a digest is; None for other digests, and for ports that lead to no switch."""
    if digest.name != DIGEST:
        return None
    port = digest.fields["port"]
    peer = topology.ports_of(digest.switch).get(port)
    if peer is None or peer.kind != "switch":
        return None
    mean = digest.fields["sum"] / max(1, digest.fields["packets"])
    delay_ns = digest.fields["delay_ticks"] * target.tick_ns
    return Alert(digest.switch, port, peer.name, mean, delay_ns)


@dataclass(slots=True)
class _Path:
    """What is remembered of a path: the last time it went out or came back, and how often it was doubled."""

    is_out: bool
    since_ns: int
    hold_ns: int
    doublings: int


class Failures:
    """The paths of a network that are out, or were."""

    def __init__(self, hold_ns: int) -> None:
        """`hold_ns`: how long a path stays out the first time."""
        self._first_ns = hold_ns
        self._paths: dict[LinkEnd, _Path] = {}

    def suppress(self, end: LinkEnd, now_ns: int) -> SuppressedPath | None:
        """Takes a path out; None where it is out already, for packets under way may still tell of it."""
        path = self._paths.get(end)
        if path is not None and path.is_out:
            return None
        doublings = 0
        if path is not None:
            forgiven = max(0, now_ns - path.since_ns) // path.hold_ns
            doublings = max(0, min(path.doublings + 1, MOST_DOUBLINGS) - forgiven)
        hold_ns = self._first_ns << doublings
        self._paths[end] = _Path(True, now_ns, hold_ns, doublings)
        return SuppressedPath(end, now_ns, now_ns + hold_ns)

    def reuse(self, now_ns: int, down: AbstractSet[LinkEnd] = frozenset()) -> list[LinkEnd]:
        """Lifts the suppression of paths whose hold time is over, except those in `down` (dead links)."""
        back = [path.end for path in self.suppressed if path.until_ns <= now_ns and path.end not in down]
        for end in back:
            state = self._paths[end]
            state.is_out, state.since_ns = False, now_ns
        return back

    @property
    def suppressed(self) -> list[SuppressedPath]:
        """The paths that are out, by switch and port."""
        out = sorted((end, path) for end, path in self._paths.items() if path.is_out)
        return [SuppressedPath(end, path.since_ns, path.since_ns + path.hold_ns) for end, path in out]

    @property
    def suppressed_ports(self) -> frozenset[LinkEnd]:
        """The ports that are not to be used."""
        return frozenset(end for end, path in self._paths.items() if path.is_out)

    def next_ns(self, now_ns: int) -> int | None:
        """When the next hold time is over; None: none goes on."""
        return min((path.until_ns for path in self.suppressed if path.until_ns > now_ns), default=None)
