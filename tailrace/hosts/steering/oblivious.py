# SPDX-License-Identifier: Apache-2.0
"""Steering without feedback (Spritz §V-A). ECMP over all paths, minimal or not: the hash of a flow's 5-tuple
chooses its only path. Oblivious packet spraying (OPS): every packet takes a path drawn by weight.
"""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import Steering
from tailrace.hosts.steering.weights import Weights


class FlowEcmp(Steering):
    """One flow. `_ev`: the entropy value (EV, the UDP source port) of its path."""

    __slots__ = ("_ev",)

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: paths of the flow.
        flow_hash: hash of the flow's 5-tuple.
        rng: not used.
        """
        super().__init__(paths)
        self._ev: int = paths.evs[flow_hash % len(paths.evs)]

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The EV of the flow's path."""
        self.reused += 1  # counts packets on the flow's current path: here every packet
        return self._ev

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Does nothing: the path does not change."""


class Ops(Steering):
    """One flow. With equal weights this is the paper's OPS (u): like Valiant, it draws paths uniformly."""

    __slots__ = ("_evs", "_rng", "_weights")

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: paths of the flow.
        flow_hash: hash of the flow's 5-tuple; not used.
        rng: draws paths.
        """
        super().__init__(paths)
        self._evs: tuple[int, ...] = paths.evs
        self._weights = Weights(paths.weights)
        self._rng = rng

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The entropy value (EV, the UDP source port) of a path drawn by weight."""
        self.explored += 1  # counts packets whose path is drawn: here every packet
        return self._evs[self._weights.draw(self._rng)]

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Does nothing: OPS ignores feedback."""
