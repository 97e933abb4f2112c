# SPDX-License-Identifier: Apache-2.0
"""RLB in Python, step by step as the paper has it: what the compiled program is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Predictor:
    """§III-B.1, or §V (`threshold_alone`): what a switch tells the sender of one of its ports. Times in ticks, queues in bytes."""

    dt: int
    warn: int
    pause: int
    margin: int
    refresh: int
    threshold_alone: bool = False
    sampled_at: int = 0
    sample: int = 0
    warned_at: int | None = None

    def arrival(self, now: int, queue: int) -> bool:
        """A packet has joined the queue: is a warning sent?"""
        foreseen = queue > self.warn if self.threshold_alone else self._by_growth(now, queue)
        if not foreseen or (self.warned_at is not None and now - self.warned_at <= self.refresh):
            return False
        self.warned_at = now
        return True

    def _by_growth(self, now: int, queue: int) -> bool:
        elapsed = now - self.sampled_at
        if elapsed < self.dt:
            return False
        growth = queue - self.sample
        self.sampled_at, self.sample = now, queue
        if queue < self.warn or growth <= 0:
            return False
        return max(self.pause - queue, 0) / Fraction(growth, elapsed) <= self.margin

    def departure(self, now: int, queue: int) -> str | None:
        """A packet has left the queue: is its warning withdrawn, or given again?"""
        if self.warned_at is None:
            return None
        if queue < self.warn:
            self.warned_at = None
            return "withdraw"
        if queue >= self.pause and now - self.warned_at > self.refresh:
            self.warned_at = now
            return "warn"
        return None


def other_slot(flow_hash: int, best: int, size: int) -> int:
    """What Presto and Hermes take where `best` is closed: a slot as far behind it as the upper half of the
    flow's hash says (p4src/common/other_slot.p4).
    """
    return (best + 1 + (flow_hash >> 16) % (size - 1)) % size if size > 1 else best


def further_slots(flow_hash: int, second: int, size: int) -> list[int]:
    """All slots from the second one on, in the order in which Presto and Hermes would take them: by a stride of
    the flow's hash, around the least prime that is not below their number.
    """
    prime = next(n for n in range(max(2, size), 2 * size + 2) if all(n % m for m in range(2, n)))
    stride = 1 + (flow_hash >> 8) % (prime - 1)
    return [slot for i in range(prime) if (slot := (second + i * stride) % prime) < size]


@dataclass
class PathStamps:
    """§V, of one path: its RTT, which counts at least as much as the oldest stamp without an answer is old."""

    keep: int
    measured: int = 0
    measured_at: int = 0
    waiting: list[int] = field(default_factory=list)

    def answer(self, now: int, stamp: int, wait: int = 0) -> None:
        """A stamp has come back. Packets of a path keep their order, so those before it have arrived, too; of
        more than two the switch knows the newest only.
        """
        self.measured, self.measured_at = max(1, now - stamp - wait), now
        if self.waiting and stamp >= self.waiting[0]:
            self.waiting = [newest for newest in self.waiting[-1:] if newest != stamp]

    def rtt(self, now: int) -> int:
        """0: not known."""
        if now - self.measured_at > self.keep or not self.measured:
            return 0
        return max(self.measured, now - self.waiting[0] if self.waiting else 0)


@dataclass(frozen=True)
class Decision:
    """What Algorithm 1 says of a packet: forward on slot p, or recirculate with p and p_s."""

    path: int
    suboptimal: int | None = None


def algorithm1(
    best: int,
    further: Sequence[int],
    warned: Sequence[bool],
    rtt: Sequence[int],
    delay: int,
    *,
    waits: bool = True,
) -> Decision:
    """Lines 2-11. `rtt` 0: not measured, and then no difference counts. Where every path is warned the lines never
    end, and the selector's own is taken.

    further: the other slots in the selector's order
    waits: the packet may recirculate; else line 8 follows in any case
    """
    path = best
    for suboptimal in (slot for slot in further if slot != best):
        if not warned[path]:
            break
        if waits and rtt[path] and rtt[suboptimal] and rtt[suboptimal] - rtt[path] > delay:
            return Decision(path, suboptimal)
        path = suboptimal
    return Decision(best if warned[path] else path)


def dynamic_limit(
    *, queue: int, size: int, inflow: Fraction, pause: int, waited: int, delay: int, won: int
) -> bool:
    """§IV-B.1: may the packet go round once more? eq. 4 and 5 by bytes, eq. 6 by delays."""
    return queue + size + int(inflow * delay) <= pause and waited + delay <= won


@dataclass
class Algorithm2:
    """§IV-B.2. Fed with recirculations; gives the ports that are found faulty."""

    most: int
    interval: int
    started: int | None = None
    counts: list[int] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    strikes: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def recirculated(self, now: int, port: int, count: int, delay: int) -> int | None:
        """A packet goes round for the count-th time; the port of an alert, where there is one."""
        alert = None
        length = max(self.interval, delay)
        if self.started is None:
            self.started = now
        elif now - self.started > length:
            alert = self._judge()
            if now - self.started > 2 * length:
                self.strikes.clear()
            self.started, self.counts, self.ports = now, [], []
        self.counts.append(count)
        self.ports.append(port)
        return alert

    def _judge(self) -> int | None:
        if Fraction(sum(self.counts), len(self.counts)) <= self.most:
            self.strikes.clear()
            return None
        busiest = max(self.ports.count(port) for port in self.ports)
        port = next(port for port in self._reached(busiest))
        self.strikes[port] += 1
        return port if self.strikes[port] == 2 else None

    def _reached(self, number: int) -> list[int]:
        """Ports in the order in which they came to a number of recirculations."""
        seen: dict[int, int] = defaultdict(int)
        reached = []
        for port in self.ports:
            seen[port] += 1
            if seen[port] == number:
                reached.append(port)
        return reached
