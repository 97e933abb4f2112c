# SPDX-License-Identifier: Apache-2.0
"""REPS, recycled entropy packet spraying (Bonato et al., EuroSys 2026, arXiv 2407.21625v6).

A sender keeps the entropy values (EVs, UDP source ports) of packets that arrived unmarked in a ring. It sends
the next packet with the oldest of them that has not been used again; if there is none, it draws an EV. After
a timeout the ring is *frozen*: packets take its EVs in turn, used or not, since these paths were alive. After
`freeze_ns` the ring is emptied, and the next `explore` packets draw EVs.

An EV is a source port of 16 bits, like the EVs of the authors' simulator.
"""

from __future__ import annotations

import random
from typing import Final

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK, TIMEOUT, Steering

RTT_WINDOW_RTOS: Final = 2
"""The largest RTT that decides on freezing is measured over this many timeouts (the authors' simulator)."""


class Reps(Steering):
    """One flow. Parameters:

    ring: number of EVs that the sender remembers, 1 or more.
    lifetime: number of packets that reuse an EV; more than 1 if ACKs report only some packets' EVs.
    freeze_ns: duration of freezing; 0: the ring is never frozen.
    explore: number of packets that draw EVs after freezing.
    most_rtt_ns: a timeout freezes the ring only if the largest recent RTT is less; otherwise the packet may
        have been dropped by a full queue. 0: each timeout freezes, for switches that trim.
    rto_ns: retransmission timeout of packets.
    """

    __slots__ = (
        "_count",
        "_evs",
        "_explore",
        "_exploring",
        "_freeze_ns",
        "_fresh",
        "_frozen",
        "_head",
        "_largest_rtt_ns",
        "_lifetime",
        "_most_rtt_ns",
        "_ring",
        "_rng",
        "_rto_ns",
        "_rtt_since_ns",
        "_turn",
        "_uses",
        "thaws_at_ns",
    )

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: EVs of the flow.
        flow_hash: hash of the flow's 5-tuple; not used.
        rng: draws EVs.
        """
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        size: int = config.parameters.get("ring", 1)
        self._lifetime: int = config.parameters.get("lifetime", 1)
        self._freeze_ns: int = config.parameters.get("freeze_ns", 0)
        self._explore: int = config.parameters.get("explore", 0)
        self._most_rtt_ns: int = config.parameters.get("most_rtt_ns", 0)
        self._rto_ns: int = config.parameters.get("rto_ns", 0)
        self._ring: list[int] = [0] * size
        self._uses: list[int] = [0] * size  # number of packets that may still reuse each EV of the ring
        self._head = 0  # slot of the next EV
        self._count = 0  # slots with an EV
        self._fresh = 0  # slots with uses left; they are the newest
        self._turn = 0  # slot of the next packet while frozen
        self._exploring = 0  # packets that are still to draw EVs
        self._frozen = False
        self._largest_rtt_ns = 0
        self._rtt_since_ns = 0
        self.thaws_at_ns = 0

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The EV of the packet that is sent now."""
        if self._exploring:
            self._exploring -= 1
        elif self._frozen and self._count:
            slot = self._turn
            self._turn = (slot + 1) % self._count
            self.reused += 1
            return self._ring[slot]
        elif not self._frozen and self._fresh:
            slot = (self._head - self._fresh) % len(self._ring)
            self._uses[slot] -= 1
            if self._uses[slot] == 0:
                self._fresh -= 1
            self.reused += 1
            return self._ring[slot]
        self.explored += 1
        return self._evs[self._rng.randrange(len(self._evs))]

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Remembers the EV of a packet that arrived unmarked; a timeout may freeze the ring."""
        if feedback == TIMEOUT:
            self._freeze(now_ns)
            return
        if self._most_rtt_ns:
            if now_ns > self._rtt_since_ns + RTT_WINDOW_RTOS * self._rto_ns:
                self._rtt_since_ns = now_ns
                self._largest_rtt_ns = 0
            self._largest_rtt_ns = max(self._largest_rtt_ns, self.rtt_ns)
        if self._frozen and now_ns > self.thaws_at_ns:
            self._frozen = False
            self._head = self._count = self._fresh = self._turn = 0
            self._uses = [0] * len(self._ring)
            self._exploring = self._explore
        if feedback == ACK:
            self._add(ev)

    def _add(self, ev: int) -> None:
        head, size = self._head, len(self._ring)
        if self._uses[head] == 0:
            self._fresh = min(self._fresh + 1, size)
        self._ring[head] = ev
        self._uses[head] = self._lifetime
        self._head = (head + 1) % size
        self._count = min(self._count + 1, size)

    def _freeze(self, now_ns: int) -> None:
        if not self._freeze_ns or self._frozen or self._exploring:
            return
        if not self._most_rtt_ns or self._largest_rtt_ns < self._most_rtt_ns:
            self._frozen = True
            self.thaws_at_ns = now_ns + self._freeze_ns
            self.blocked += 1


class RecycledFifo(Steering):
    """One flow of the earlier REPS, without freezing (arXiv 2407.21625v1): EVs of packets that arrived
    unmarked wait in a queue without limit. Packets that are sent before the first feedback take the EVs in
    turn, from a random one on.
    """

    __slots__ = ("_evs", "_first", "_queue", "_read", "_rng", "_start")

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args: as for Reps; there are no parameters."""
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        self._start: int = rng.randrange(len(paths.evs))  # number of the flow's first EV
        self._first = 0  # EVs that were taken in turn; -1: there was feedback
        self._queue: list[int] = []
        self._read = 0  # position of the oldest EV in the queue

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The EV of the packet that is sent now."""
        ev = self.recycled()
        if ev:
            return ev
        self.explored += 1
        if 0 <= self._first < len(self._evs):
            self._first += 1
            return self._evs[(self._start + self._first) % len(self._evs)]
        return self._evs[self._rng.randrange(len(self._evs))]

    def recycled(self) -> int:
        """The oldest EV of the queue, which it leaves; 0: the queue is empty."""
        if self._read == len(self._queue):
            return 0
        ev = self._queue[self._read]
        self._read += 1
        if self._read == len(self._queue):
            self._queue = []
            self._read = 0
        self.reused += 1
        return ev

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:  # noqa: ARG002
        """Remembers the EV of a packet that arrived unmarked."""
        self._first = -1
        if feedback == ACK:
            self._queue.append(ev)
