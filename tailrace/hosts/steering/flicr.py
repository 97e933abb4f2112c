# SPDX-License-Identifier: Apache-2.0
"""Flicr: a flow keeps its path until the path is congested, then draws another path (Spritz §V-A).

The paper uses Flicr as its coarse-grained baseline and describes only its purpose: paths change seldom, so
that few packets are reordered, but they react to congestion. Assumptions:

* Time is divided into epochs of `epoch_ns`, for example one round-trip time. An epoch counts the packets of
  the current path for which an ACK or NACK arrives. If more than `marked_share` of them were marked or
  trimmed, the flow draws another path by weight. (Such epochs and the default of 5 % are those of FlowBender,
  CoNEXT'14, by one of Flicr's authors.)
* A flow that has sent nothing for an epoch begins a new flowlet, and draws a path, too.
* After a timeout on the current path the flow draws a path at once. No path is remembered as bad.
"""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, TIMEOUT, Steering
from tailrace.hosts.steering.weights import Weights


class Flicr(Steering):
    """One flow.

    ev: entropy value (EV, the UDP source port) of the current path; 0: a path must be drawn.
    """

    __slots__ = (
        "_answered",
        "_congested",
        "_epoch_ends_ns",
        "_epoch_ns",
        "_evs",
        "_last_sent_ns",
        "_marked_share",
        "_rng",
        "_weights",
        "ev",
    )

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: paths of the flow.
        flow_hash: hash of the flow's 5-tuple; not used.
        rng: draws paths.
        """
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        self._weights = Weights(paths.weights)
        self._epoch_ns: int = config.epoch_ns
        self._marked_share: float = config.marked_share
        self._epoch_ends_ns = 0
        self._last_sent_ns = 0
        self._answered = 0  # packets of this epoch with an ACK or NACK
        self._congested = 0  # marked or trimmed packets among them
        self.ev = 0

    def next_ev(self, now_ns: int) -> int:
        """The EV of the current path; draws a path if there is none, or if a flowlet begins."""
        if self.ev == 0 or now_ns - self._last_sent_ns > self._epoch_ns:
            self._draw(now_ns)
        else:
            self.reused += 1
        self._last_sent_ns = now_ns
        return self.ev

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Handles the outcome of a packet; outcomes on earlier paths are ignored."""
        if ev != self.ev:
            return
        if feedback == TIMEOUT:
            self.ev = 0
            return
        self._answered += 1
        if feedback != ACK:
            self._congested += 1
        if now_ns >= self._epoch_ends_ns:
            if self._congested > self._marked_share * self._answered:
                self.ev = 0
            else:
                self._begin_epoch(now_ns)

    def _draw(self, now_ns: int) -> None:
        self.explored += 1
        self.ev = self._evs[self._weights.draw(self._rng)]
        self._begin_epoch(now_ns)

    def _begin_epoch(self, now_ns: int) -> None:
        self._epoch_ends_ns = now_ns + self._epoch_ns
        self._answered = 0
        self._congested = 0
