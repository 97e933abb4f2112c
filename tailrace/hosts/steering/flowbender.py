# SPDX-License-Identifier: Apache-2.0
"""FlowBender: a flow whose packets are marked takes another path (Kabbani et al., CoNEXT'14).

A flow begins on the path that its hash selects. An epoch is congested if too large a share of the flow's
packets on the current path was marked. After `epochs` consecutive congested epochs, or at once after a
timeout, the flow changes a field that switches hash, and so its path. The new path may be the same.

DEVIATION: an epoch is a round-trip time of the idle network; in the paper it is the flow's round-trip time,
as measured by DCTCP. In the paper switches also hash a small number V, which the flow changes; here the flow
changes its UDP source port, which requires no change to switches.
"""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, TIMEOUT, Steering


class FlowBender(Steering):
    """One flow.

    ev: the current source port, which is the entropy value (EV) of the path. Of the counters of Steering,
        `explored` counts changes of the port, `reused` all packets.
    """

    __slots__ = (
        "_answered",
        "_congested",
        "_epoch_ends_ns",
        "_epoch_ns",
        "_epochs",
        "_evs",
        "_marked",
        "_marked_share",
        "_rng",
        "ev",
    )

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:
        """Args:
        paths: source ports of the flow; switches choose the path of each by a hash.
        flow_hash: hash of the flow's 5-tuple, which chooses the first port.
        rng: draws later ports.
        """
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        self._epoch_ns: int = config.epoch_ns
        self._marked_share: float = config.marked_share
        self._epochs: int = config.epochs
        self._epoch_ends_ns = 0
        self._congested = 0  # consecutive congested epochs
        self._answered = 0  # packets of this epoch with an ACK or NACK
        self._marked = 0  # marked or trimmed packets among them
        self.ev: int = paths.evs[flow_hash % len(paths.evs)]

    def next_ev(self, now_ns: int) -> int:
        """The current source port; the flow's first packet begins the first epoch."""
        if self._epoch_ends_ns == 0:
            self._begin_epoch(now_ns)
        self.reused += 1
        return self.ev

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Handles the outcome of a packet; outcomes of earlier source ports are ignored."""
        if ev != self.ev:
            return
        if feedback == TIMEOUT:
            self._bend(now_ns)
            return
        self._answered += 1
        if feedback != ACK:
            self._marked += 1
        if now_ns < self._epoch_ends_ns:
            return
        if self._marked > self._marked_share * self._answered:
            self._congested += 1
        else:
            self._congested = 0
        if self._congested >= self._epochs:
            self._bend(now_ns)
        else:
            self._begin_epoch(now_ns)

    def _bend(self, now_ns: int) -> None:
        self.explored += 1
        if len(self._evs) > 1:
            before = self.ev
            while self.ev == before:
                self.ev = self._evs[self._rng.randrange(len(self._evs))]
        self._congested = 0
        self._begin_epoch(now_ns)

    def _begin_epoch(self, now_ns: int) -> None:
        self._epoch_ends_ns = now_ns + self._epoch_ns
        self._answered = 0
        self._marked = 0
