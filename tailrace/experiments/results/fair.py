# SPDX-License-Identifier: Apache-2.0
"""Completion times under fluid max-min fairness over all paths: what ideal fair sharing would reach.

Each flow is a fluid that may be split over all paths at will, and at any time no flow could be faster
without one that is not faster becoming slower (Bertsekas and Gallager, Data Networks, 1992, §6.5.2). The
parts of the network that bound rates are those of floor.py, all at once. In leaf-spines and fat-trees whose
links of a tier are alike these are all bounds that there are; in a Dragonfly and a Slim Fly single links
bound paths, too, so true rates may be lower there. Packets, answers, and what congestion control takes to
find its rate are left out.

It is a mark to compare with, and no bound: the mean of short flows first is smaller (floor.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

MOST_STEPS = 1 << 17
"""The sum, over starts and ends of flows, of those under way then; of more it is not reckoned, for that would
take longer than half a second.
"""

_LEAST_BITS = 1e-3  # less is what rounding leaves

Part = tuple[str, str]
"""A kind of part, and which."""


class Fair(msgspec.Struct, frozen=True):
    """Of the flows that finished and count."""

    fct_mean_ns: float
    slowdown_mean: float


@dataclass(frozen=True, slots=True)
class Fluid:
    """A flow: when it starts, in ns, how much it is, in bits, and the parts that all of it passes."""

    start_ns: int
    bits: int
    parts: tuple[Part, ...]


def rates(flows: Mapping[int, Sequence[Part]], capacity: Mapping[Part, float]) -> dict[int, float]:
    """The max-min fair rates of flows, in the unit of the capacities (progressive filling)."""
    members: dict[Part, list[int]] = {}
    for number, parts in flows.items():
        for part in parts:
            members.setdefault(part, []).append(number)
    left = {part: float(capacity[part]) for part in members}
    count = {part: len(own) for part, own in members.items()}
    # a part's share only grows while others are filled, so an old one is looked at too early, never too late
    waiting = [(left[part] / count[part], part) for part in members]
    heapq.heapify(waiting)
    found: dict[int, float] = {}
    while waiting:
        share, part = heapq.heappop(waiting)
        if not count[part]:
            continue
        now = left[part] / count[part]
        if now > share:
            heapq.heappush(waiting, (now, part))
            continue
        for number in members[part]:
            if number not in found:
                found[number] = now
                for other in flows[number]:
                    left[other] -= now
                    count[other] -= 1
    return found


def ends_ns(flows: Sequence[Fluid], capacity_bps: Mapping[Part, int]) -> list[float] | None:
    """When the last bit of each flow has passed; None where that takes too many steps."""
    per_ns = {part: bps / 1e9 for part, bps in capacity_bps.items()}
    coming = sorted(range(len(flows)), key=lambda number: flows[number].start_ns, reverse=True)
    left: dict[int, float] = {}
    ends = [0.0] * len(flows)
    now_ns, steps = 0.0, 0
    while left or coming:
        if not left:
            now_ns = max(now_ns, float(flows[coming[-1]].start_ns))
        while coming and flows[coming[-1]].start_ns <= now_ns:
            number = coming.pop()
            left[number] = float(flows[number].bits)
        steps += len(left)
        if steps > MOST_STEPS:
            return None
        speeds = rates({number: flows[number].parts for number in left}, per_ns)
        done_ns = {number: now_ns + bits / speeds[number] for number, bits in left.items()}
        until_ns = min(done_ns.values())
        if coming:
            until_ns = min(until_ns, float(flows[coming[-1]].start_ns))
        for number, speed in speeds.items():
            left[number] -= speed * (until_ns - now_ns)
            if done_ns[number] <= until_ns or left[number] < _LEAST_BITS:
                del left[number]
                ends[number] = until_ns
        now_ns = until_ns
    return ends
