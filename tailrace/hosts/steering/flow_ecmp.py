# SPDX-License-Identifier: Apache-2.0
"""ECMP over all paths, minimal or not: the hash of a flow's 5-tuple chooses its only path (Spritz §V-A)."""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import Steering


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
