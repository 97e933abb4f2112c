# SPDX-License-Identifier: Apache-2.0
"""The common part of Spritz-Scout and Spritz-Spray (Spritz §IV): the send logic, and the paths' weights w.

    w[i] = 0                 after a packet on path i timed out (Algorithm 2 l. 21, Algorithm 3 l. 8)
    w[0] = min_bias_factor   if nearly all packets are marked (Algorithm 2 l. 23-25, Algorithm 3 l. 10-12)
    w[i] = weight of eq. 1   initially, and `timer_ns` after the last change of w[i] (§IV-A)

Assumptions where the description leaves a choice:

* ecn_rate is a moving average over the flow's acknowledgments: 1 for marked packets, 0 for unmarked packets.
* The timer has the same length for all paths. It restarts with each change of a path's weight, so that no
  weight is restored early. The bias to path 0 ends with the same timer, and restarts while marks continue.
* min_bias_factor, which the paper does not specify, is by default MIN_BIAS times its weight of eq. 1. A
  strong bias overloads minimal paths that are already the bottleneck: if min_bias_factor is the sum of all
  weights, adversarial traffic on 1056 hosts loses three times as many packets, and the p99 FCT is 1/6 longer.
* DEVIATION: a bias does not unblock path 0. The algorithms, taken literally, would send half of a flow to a
  failed minimal path while all other paths are congested.
* If every path is blocked, paths are drawn by their weights of eq. 1.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from typing import Final

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, ACK_ECN, Steering
from tailrace.hosts.steering.path_state import PathState
from tailrace.hosts.steering.weights import Weights

MIN_BIAS: Final = 2
"""Default weight of path 0 while nearly all packets are marked, as a multiple of its weight of eq. 1."""


class Spritz(Steering):
    """One flow's path weights, and its good paths; names as in the paper's pseudo-code.

    paths: entropy values (EVs, UDP source ports) of the flow's paths.
    state: what is known of these paths; flows to the same host may share it (Spritz §III-C).
    w: the weights of the paths, those of `state`.
    buffer_paths: EVs of good paths, the next path first, those of `state`.
    explore_threshold: number of packets after which a flow draws a path although it has good paths.
    packet_count: packets since a path was last drawn because of explore_threshold.
    ecn_rate: share of marked acknowledgments, a moving average.
    """

    __slots__ = (
        "_bias",
        "_ecn_gain",
        "_ecn_limit",
        "_index",
        "_most_good",
        "_rng",
        "buffer_paths",
        "ecn_rate",
        "explore_threshold",
        "packet_count",
        "paths",
        "state",
        "w",
    )

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: paths of the flow.
        flow_hash: hash of the flow's 5-tuple; not used.
        rng: draws paths.
        """
        super().__init__(paths)
        self._rng = rng
        self._most_good: int = config.buffer  # maximum length of `buffer_paths`
        self._bias: float = config.min_bias_factor  # 0: the default
        self._ecn_gain: float = config.ecn_gain
        self._ecn_limit: float = config.ecn_rate
        self._index: dict[int, int] = {}  # index of each EV; filled when first needed
        self.paths: tuple[int, ...] = paths.evs
        self.share(PathState(paths, config.timer_ns))
        self.explore_threshold: int = config.explore_threshold
        self.packet_count = 0
        self.ecn_rate = 0.0

    def share(self, state: PathState) -> None:
        """Shares the state of other flows with the same paths from now on."""
        self.state = state
        self.w: Weights = state.w
        self.buffer_paths: list[int] = state.buffer_paths

    def next_ev(self, now_ns: int) -> int:
        """Algorithm 1, Send Logic."""
        if now_ns >= self.state.restore_ns:
            self.state.restore(now_ns)
        if self.packet_count > self.explore_threshold:
            self.packet_count = 0
            return self._sample()
        self.packet_count += 1
        if not self.buffer_paths:
            return self._sample()
        self.reused += 1
        return self._take_front()

    def _sample(self) -> int:
        self.explored += 1
        return self.paths[self.w.draw(self._rng)]

    @abstractmethod
    def _take_front(self) -> int:
        """The front element of buffer_paths, which is not empty."""

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Algorithm 2 or 3, Feedback Logic."""
        if now_ns >= self.state.restore_ns:
            self.state.restore(now_ns)
        if feedback == ACK:
            self.ecn_rate -= self._ecn_gain * self.ecn_rate
        elif feedback == ACK_ECN:
            self.ecn_rate += self._ecn_gain * (1.0 - self.ecn_rate)
        self._learn(now_ns, feedback, ev)
        if self.ecn_rate > self._ecn_limit:
            self._bias_to_minimal(now_ns)

    @abstractmethod
    def _learn(self, now_ns: int, feedback: int, ev: int) -> None:
        """Updates buffer_paths and weights according to the outcome of a packet."""

    def _find(self, ev: int) -> int:
        """The index i of an EV in `paths`; -1: `paths` does not contain it."""
        if not self._index:
            self._index = {path: position for position, path in enumerate(self.paths)}
        return self._index.get(ev, -1)

    def _block(self, now_ns: int, i: int) -> None:
        """w[i] = 0, until the timer expires."""
        self.blocked += 1
        self.state.block(now_ns, i)

    def _bias_to_minimal(self, now_ns: int) -> None:
        """w[0] = min_bias_factor, until the timer expires."""
        if not self.w.is_zero(0):
            self.state.bias_first(now_ns, self._bias, MIN_BIAS)
