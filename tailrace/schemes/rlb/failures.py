# SPDX-License-Identifier: Apache-2.0
"""Suppression and reuse of paths that a switch reports as faulty (RLB §IV-B.2, Algorithm 2). A path is named
by the switch and its egress port. The caller passes the time.

    alert of a path in use       -> suppressed for the hold time; each further alert doubles the hold time
    hold time over, link is up   -> in use again; Algorithm 2 continues to watch the path
    in use, no alert             -> each hold time without an alert undoes one doubling

A silent fault affects only the data on the faulty path, so a path can be tested only by using it. To bound
the harm, each failed trial doubles the time to the next trial, as route-flap damping does (RFC 2439). A link
whose probes are lost (controller.linkwatch) is not tried until probes arrive again.

DEVIATION: the paper suppresses paths and does not say when they are used again.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.target import Target
from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.topology import Topology

DIGEST = "failure_alert_t"
"""The digest of p4src/rlb/failure.p4."""

MOST_DOUBLINGS = 6


class Alert(msgspec.Struct, frozen=True):
    """A switch's report of a faulty path behind one of its ports.

    neighbour: the switch behind the port, which is assumed to have failed (Algorithm 2, line 8)
    mean: mean recirculations per packet, Rc_avg
    delay_ns: t_rc, the delay of a recirculation
    """

    switch: str
    port: int
    neighbour: str
    mean: float
    delay_ns: int

    @property
    def end(self) -> LinkEnd:
        """The faulty link direction, as (switch, egress port)."""
        return self.switch, self.port

    @property
    def facts(self) -> dict[str, Any]:
        """The fields for the log."""
        return {
            "switch": self.switch,
            "port": self.port,
            "neighbour": self.neighbour,
            "mean_recirculations": round(self.mean, 3),
            "t_rc_ns": self.delay_ns,
        }


def alert_of(digest: DigestMessage, topology: Topology, target: Target) -> Alert | None:
    """Decodes a digest of an alert; None for other digests, and for ports without a switch behind them."""
    if digest.name != DIGEST:
        return None
    port = digest.fields["port"]
    peer = topology.ports_of(digest.switch).get(port)
    if peer is None or peer.kind != "switch":
        return None
    mean = digest.fields["sum"] / max(1, digest.fields["packets"])
    delay_ns = digest.fields["delay_ticks"] * target.tick_ns
    return Alert(digest.switch, port, peer.name, mean, delay_ns)


class _Path(msgspec.Struct):
    """State of a path.

    is_suppressed: whether the path is suppressed
    since_ns: time of the last suppression or reuse
    hold_ns: current hold time
    doublings: how often the hold time is doubled
    """

    is_suppressed: bool
    since_ns: int
    hold_ns: int
    doublings: int


class Failures:
    """The paths of a network that are or were suppressed."""

    def __init__(self, hold_ns: int) -> None:
        """`hold_ns`: the hold time of a first suppression."""
        self._first_hold_ns = hold_ns
        self._paths: dict[LinkEnd, _Path] = {}

    def suppress(self, end: LinkEnd, now_ns: int) -> SuppressedPath | None:
        """Suppresses a path; None if it is suppressed already (late packets may cause further alerts)."""
        path = self._paths.get(end)
        if path is not None and path.is_suppressed:
            return None
        doublings = 0
        if path is not None:
            undone = max(0, now_ns - path.since_ns) // path.hold_ns
            doublings = max(0, min(path.doublings + 1, MOST_DOUBLINGS) - undone)
        hold_ns = self._first_hold_ns << doublings
        self._paths[end] = _Path(True, now_ns, hold_ns, doublings)
        return SuppressedPath(end, now_ns, now_ns + hold_ns)

    def reuse(self, now_ns: int, down: AbstractSet[LinkEnd] = frozenset()) -> list[LinkEnd]:
        """Lifts the suppression of paths whose hold time is over, except dead links; returns these paths."""
        reused = [path.end for path in self.suppressed if path.until_ns <= now_ns and path.end not in down]
        for end in reused:
            state = self._paths[end]
            state.is_suppressed, state.since_ns = False, now_ns
        return reused

    @property
    def suppressed(self) -> list[SuppressedPath]:
        """The suppressed paths, in order of switch and port."""
        paths = sorted((end, path) for end, path in self._paths.items() if path.is_suppressed)
        return [SuppressedPath(end, path.since_ns, path.since_ns + path.hold_ns) for end, path in paths]

    def next_ns(self, now_ns: int) -> int | None:
        """The time at which the next hold time ends; None if no hold time is running."""
        return min((path.until_ns for path in self.suppressed if path.until_ns > now_ns), default=None)
