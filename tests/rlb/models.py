# SPDX-License-Identifier: Apache-2.0
"""RLB in Python, step by step as the paper has it: what the compiled program is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Predictor:
    """§III-B.1: what a switch tells the sender of one of its ports. Times in ticks, queues in bytes."""

    dt: int
    warn: int
    pause: int
    margin: int
    refresh: int
    sampled_at: int = 0
    sample: int = 0
    warned_at: int | None = None

    def arrival(self, now: int, queue: int) -> bool:
        """A packet has joined the queue: is a warning sent?"""
        elapsed = now - self.sampled_at
        if elapsed < self.dt:
            return False
        growth = queue - self.sample
        self.sampled_at, self.sample = now, queue
        if queue < self.warn or growth <= 0:
            return False
        remaining = max(self.pause - queue, 0) / Fraction(growth, elapsed)
        if remaining > self.margin or (self.warned_at is not None and now - self.warned_at <= self.refresh):
            return False
        self.warned_at = now
        return True

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


@dataclass(frozen=True)
class Decision:
    """What Algorithm 1 says of a packet: forward on slot p, or recirculate with p and p_s."""

    path: int
    suboptimal: int | None = None


def algorithm1(best: int, second: int, warned: Sequence[bool], rtt: Sequence[int], delay: int) -> Decision:
    """Lines 2-11. `rtt` 0: not measured, and then no difference counts. Where every path is warned the lines never
    end, and the selector's own is taken.
    """
    order = [second] + [(second + i) % len(warned) for i in range(1, len(warned))]
    others = [slot for i, slot in enumerate(order) if slot != best and slot not in order[:i]]
    path = best
    for suboptimal in others:
        if not warned[path]:
            break
        if rtt[path] and rtt[suboptimal] and rtt[suboptimal] - rtt[path] > delay:
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
        found = []
        for port in self.ports:
            seen[port] += 1
            if seen[port] == number:
                found.append(port)
        return found
