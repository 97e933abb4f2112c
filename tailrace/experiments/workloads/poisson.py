# SPDX-License-Identifier: Apache-2.0
"""Open loop: every host starts flows by a Poisson process of its own, whatever has become of earlier ones.

The load is the fraction of a host's link rate that its flows' bytes ask for on average, headers not counted:
a host with rate R starts `load * R / (8 * mean size)` flows a second. Or it is that of the leaves' uplinks
(load.py), which all hosts together then load so.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.bursts import Bursts
from tailrace.experiments.workloads.load import FABRIC, HOSTS, OF, host_load
from tailrace.experiments.workloads.patterns import chosen
from tailrace.experiments.workloads.registry import Peers, Sizes, register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import keys
from tailrace.spec.constants import NS_BITS
from tailrace.topology import Host, Topology

LOAD = keys.number("load", "share of the links' rate that the flows' bytes ask for", above=0, most=1)
DURATION = keys.time("duration", "flows start for so long", least=1)

_DRAWS = 64
"""Receivers that are drawn before one without a free slot is taken."""


def exponential(rng: random.Random) -> float:
    """A number from the exponential distribution with mean 1.

    By comparisons alone (J. von Neumann, Various techniques used in connection with random digits, 1951), so
    that no machine's logarithm decides what a seed gives: a run of falling numbers that begins with x is of
    odd length with probability e^-x; runs of even length count towards the whole part.
    """
    integer = 0
    while True:
        first = last = rng.random()
        odd = True
        while (drawn := rng.random()) < last:
            last = drawn
            odd = not odd
        if odd:
            return integer + first
        integer += 1


def expected_flows(hosts: Iterable[Host], mean_bytes: float, share: float, duration_ns: int) -> float:
    """How many flows hosts start on average that ask for a share of their links."""
    return sum(share * host.rate_bps for host in hosts) * duration_ns / (mean_bytes * NS_BITS)


def starts_ns(
    host: Host, mean_bytes: float, share: float, duration_ns: int, rng: random.Random
) -> Iterator[int]:
    """When a host's flows start that ask for a share of its link; none starts at the duration or later."""
    mean_gap_ns = mean_bytes * NS_BITS / (share * host.rate_bps)
    time_ns = mean_gap_ns * exponential(rng)
    while time_ns < duration_ns:
        yield int(time_ns)
        time_ns += mean_gap_ns * exponential(rng)


class Slots:
    """How many flows each receiver has at a time, as far as that can be known beforehand.

    A receiver has so many slots, and a flow takes the one that is free first. It is taken for to have gone
    when its bytes would have been sent at its share of the receiver's link, the rate over the slots: how long
    it will take in the network nobody knows when the flows are made.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # of each receiver's slots that were taken before, a heap; one that never was is free
        self._free_ns: dict[str, list[int]] = {}

    def choose(self, draw: Callable[[], Host], now_ns: int) -> Host:
        """A receiver with a free slot; if many draws find none, the one of them that has one first."""
        best, best_ns = None, 0
        for _ in range(_DRAWS):
            host = draw()
            heap = self._free_ns.setdefault(host.name, [])
            free_ns = heap[0] if len(heap) == self._slots else 0
            if free_ns <= now_ns:
                return host
            if best is None or free_ns < best_ns:
                best, best_ns = host, free_ns
        assert best is not None, "something was drawn"
        return best

    def take(self, host: Host, now_ns: int, size_bytes: int) -> None:
        """Takes a slot of a receiver that was chosen."""
        heap = self._free_ns[host.name]
        busy_ns = -(-size_bytes * NS_BITS * self._slots // host.rate_bps)
        if len(heap) < self._slots:
            heapq.heappush(heap, now_ns + busy_ns)
        else:
            heapq.heapreplace(heap, max(now_ns, heap[0]) + busy_ns)


@register("poisson", "every host starts flows at random")
@dataclass(frozen=True, slots=True)
class Poisson:
    """Poisson arrivals for `duration_ns`; receivers are drawn for each flow. Ids rise with the start."""

    bursts: Bursts
    sizes: Sizes
    peers: Peers
    load: Annotated[float, LOAD]
    duration_ns: Annotated[int, DURATION]
    of: Annotated[str, keys.choice("of", "links that the load is of: hosts', or the leaves' uplinks", OF)] = (
        HOSTS
    )
    senders: Annotated[
        int,
        keys.integer(
            "senders", "flows to a receiver at once at most", least=1, absent="any", section="Spritz §V-B"
        ),
    ] = 0

    def __post_init__(self) -> None:
        """Refuse what lacks a size."""
        self.sizes.check_given()

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        return self.bursts.beside(self._arrivals(topology, rng), self.duration_ns, topology, rng)

    def _arrivals(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        burst_hosts = self.bursts.own_hosts(topology)
        hosts = [host for host in chosen(topology, 0, rng) if host.name not in burst_hosts]
        apart, sizes = self.peers.apart, self.sizes.distribution
        partners = pairs.Partners(hosts, pairs.groups_of(topology, hosts, apart))
        share = self.load
        if self.of == FABRIC:
            share = host_load(topology, hosts, apart, self.load)
        check_flows(expected_flows(hosts, sizes.mean_bytes, share, self.duration_ns))
        arrivals = [
            (start_ns, index)
            for index, host in enumerate(hosts)
            for start_ns in starts_ns(host, sizes.mean_bytes, share, self.duration_ns, rng)
        ]
        if not arrivals:
            raise PatternError("no flow begins in so short a duration; expected a longer one, or more load")
        arrivals.sort()
        slots = Slots(self.senders) if self.senders else None
        for start_ns, index in arrivals:
            sender = hosts[index]
            if slots is None:
                yield Transfer(sender, partners.draw(sender, rng), sizes.draw(rng), start_ns)
                continue
            size_bytes = sizes.draw(rng)
            receiver = slots.choose(partial(partners.draw, sender, rng), start_ns)
            slots.take(receiver, start_ns, size_bytes)
            yield Transfer(sender, receiver, size_bytes, start_ns)
