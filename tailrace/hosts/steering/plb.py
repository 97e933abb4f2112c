# SPDX-License-Identifier: Apache-2.0
"""PLB, protective load balancing (Qureshi et al., SIGCOMM 2022), and PRR, protective reroute (Wetherall et
al., SIGCOMM 2023), by the rules of Linux (net/ipv4/tcp_plb.c). A flow keeps its entropy value, EV, until

* `rounds` rounds in a row were congested, or `idle_rounds` rounds and no packet is in flight (PLB), or
* a packet times out (PRR). PLB then counts no rounds for `suspend_ns` to twice that time, drawn at random.
  Packets that time out within one timeout count once, as in TCP, which has one timer for all its packets.

A round ends when all packets are acknowledged that were sent before its beginning. It is congested if at
least the share `share` of its packets was marked or trimmed.

DEVIATION: Linux counts marked bytes of a TCP flow; here each packet counts as much as any other.
"""

from __future__ import annotations

import random

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, TIMEOUT, Steering


class Plb(Steering):
    """One flow. Parameters:

    rounds, idle_rounds: consecutive congested rounds after which the EV changes; 0: never.
    share: share of marked packets of a congested round, 0..1.
    suspend_ns: shortest time without PLB after a timeout.
    rto_ns: retransmission timeout.
    round_ns: a round lasts this long, instead of ending with an acknowledgment; 0: it does not.
    """

    __slots__ = (
        "_answered",
        "_congested",
        "_evs",
        "_idle_rounds",
        "_marked",
        "_moved",
        "_packets",
        "_rng",
        "_round_ends",
        "_round_ns",
        "_rounds",
        "_rto_ns",
        "_sent",
        "_share",
        "_suspend_ns",
        "_suspended_until_ns",
        "_timed_out_ns",
        "ev",
    )

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:
        """Args:
        paths: EVs of the flow.
        flow_hash: hash of the flow's 5-tuple, which chooses the first EV.
        rng: draws later EVs, and the time of suspension.
        """
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        self._rounds: int = config.parameters.get("rounds", 0)
        self._idle_rounds: int = config.parameters.get("idle_rounds", 0)
        self._share: float = config.parameters.get("share", 1.0)
        self._suspend_ns: int = config.parameters.get("suspend_ns", 0)
        self._rto_ns: int = config.parameters.get("rto_ns", 0)
        self._round_ns: int = config.parameters.get("round_ns", 0)
        self._sent = 0
        self._answered = 0  # packets with an ACK, a NACK or a timeout
        self._round_ends = 0  # number of answered packets, or time in ns, at which the round ends
        self._packets = 0  # packets of this round with an ACK or NACK
        self._marked = 0  # marked or trimmed packets among them
        self._congested = 0  # consecutive congested rounds
        self._moved = False  # whether the next packet is the first with its EV
        self._suspended_until_ns = 0
        self._timed_out_ns = -self._rto_ns - 1  # time of the last timeout that counted
        self.ev: int = paths.evs[flow_hash % len(paths.evs)]

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The flow's EV."""
        if self._idle_rounds and self._congested >= self._idle_rounds and self._sent == self._answered:
            self._draw()
        self._sent += 1
        if self._moved:
            self._moved = False
            self.explored += 1
        else:
            self.reused += 1
        return self.ev

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:  # noqa: ARG002
        """Counts the packet in its round."""
        self._answered += 1
        if feedback == TIMEOUT:
            if now_ns <= self._timed_out_ns + self._rto_ns:
                return
            self._timed_out_ns = now_ns
            self._congested = 0
            self._suspended_until_ns = now_ns + int(self._suspend_ns * (1 + self._rng.random()))
            self.blocked += 1
            self._draw()
            return
        self._packets += 1
        if feedback != ACK:
            self._marked += 1
        if now_ns > self._round_ends if self._round_ns else self._answered >= self._round_ends:
            self._end_round(now_ns)

    def _end_round(self, now_ns: int) -> None:
        if now_ns >= self._suspended_until_ns:
            self._congested = self._congested + 1 if self._marked >= self._share * self._packets else 0
            if self._rounds and self._congested >= self._rounds:
                self._draw()
        self._packets = self._marked = 0
        self._round_ends = now_ns + self._round_ns if self._round_ns else self._sent

    def _draw(self) -> None:
        self._moved = True
        self._congested = 0
        self.ev = self._evs[self._rng.randrange(len(self._evs))]
