# SPDX-License-Identifier: Apache-2.0
"""Open loop: every host starts flows as a Poisson process, whether or not its earlier flows are complete.

The load is the average bit rate of a host's flows as a fraction of its link's rate, headers not counted: a
host with link rate R starts `load * R / (8 * mean size)` flows a second. With of=fabric the load is the
fraction of the rate of all leaves' uplinks that all hosts together use (load.py).

Without measure= all flows are measured, although the network is empty when the first ones start and idle
when the last ones end. With it, only those that start in an interval (interval.py).

With bursts= there are also bursts: periodically several hosts send short flows to one host at once
(bursts.py). With spots= the hosts of hot spots have no other flows.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

import msgspec

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.bursts import Bursts
from tailrace.experiments.workloads.classes import BACKGROUND, NO_CLASS
from tailrace.experiments.workloads.interval import LOADED, Interval, parse_interval
from tailrace.experiments.workloads.load import FABRIC, HOSTS, OF, host_load
from tailrace.experiments.workloads.patterns import chosen
from tailrace.experiments.workloads.registry import Peers, Sizes, register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import SpecError, keys
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns
from tailrace.topology import Host, Topology

LOAD = keys.number("load", "mean bit rate of the flows, as a share of the links' rate", above=0, most=1)
DURATION = keys.time("duration", "time during which flows start", least=1)

_DRAWS = 64
"""Draws after which a receiver without a free slot (see Slots) is accepted."""


def exponential(rng: random.Random) -> float:
    """A number from the exponential distribution with mean 1.

    It uses comparisons only (J. von Neumann, Various techniques used in connection with random digits, 1951),
    so the result for a seed does not depend on a machine's logarithm. A descending run of random numbers that
    starts with x has odd length with probability e^-x. Each run of even length adds 1 to the integer part;
    the first run of odd length ends the search, and its x is the fractional part.
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
    """The mean number of flows that hosts start if their flows use this share of their links' rates."""
    return sum(share * host.rate_bps for host in hosts) * duration_ns / (mean_bytes * NS_BITS)


def arrivals(
    hosts: Sequence[Host], mean_bytes: float, share: float, duration_ns: int, rng: random.Random
) -> list[tuple[int, int]]:
    """The flows that hosts start before `duration_ns`, which use this share of their links' rates: the start
    time in ns and the index of the host of each, in the order of time.

    Raises:
        PatternError: there is no flow.
    """
    starts = []
    for index, host in enumerate(hosts):
        # bytes * NS_BITS / (bits/s) is a time in ns
        mean_gap_ns = mean_bytes * NS_BITS / (share * host.rate_bps)
        time_ns = mean_gap_ns * exponential(rng)
        while time_ns < duration_ns:
            starts.append((int(time_ns), index))
            time_ns += mean_gap_ns * exponential(rng)
    if not starts:
        raise PatternError("no flow starts within the duration; expected a longer one, or more load")
    return sorted(starts)


class Slots:
    """Limits the number of concurrent flows to a receiver, by estimates of the flows' durations.

    Each receiver has `slots` slots, and a flow occupies the slot that becomes free first. Real durations are
    not known when flows are generated. The estimate is the time to send the flow's bytes at the rate of the
    receiver's link divided by the number of slots.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # for each receiver a heap: when each slot that was ever occupied becomes free again
        self._free_ns: dict[str, list[int]] = {}

    def choose(self, draw: Callable[[], Host], now_ns: int) -> Host:
        """A drawn receiver with a free slot; after _DRAWS draws, the receiver whose slot is free first."""
        best, best_ns = None, 0
        for _ in range(_DRAWS):
            host = draw()
            heap = self._free_ns.setdefault(host.name, [])
            free_ns = heap[0] if len(heap) == self._slots else 0
            if free_ns <= now_ns:
                return host
            if best is None or free_ns < best_ns:
                best, best_ns = host, free_ns
        assert best is not None, "at least one receiver was drawn"
        return best

    def take(self, host: Host, now_ns: int, size_bytes: int) -> None:
        """Occupies a slot of a receiver that `choose` has returned."""
        heap = self._free_ns[host.name]
        busy_ns = -(-size_bytes * NS_BITS * self._slots // host.rate_bps)
        if len(heap) < self._slots:
            heapq.heappush(heap, now_ns + busy_ns)
        else:
            heapq.heapreplace(heap, max(now_ns, heap[0]) + busy_ns)


@register("poisson", "every host starts flows to random hosts, as a Poisson process")
class Poisson(msgspec.Struct, frozen=True):
    """Poisson arrivals for `duration_ns`; each flow has a random receiver. Flow ids rise with start times."""

    bursts: Bursts
    sizes: Sizes
    peers: Peers
    load: Annotated[float, LOAD]
    duration_ns: Annotated[
        int | None,
        keys.time("duration", "time during which flows start", least=1, absent="twice the end of measure="),
    ] = None
    measure: Annotated[
        Interval | None,
        keys.parsed(
            "measure",
            "only flows that start in this interval are measured; the others load the network",
            "an interval such as 5ms..20ms",
            parse_interval,
            absent="all flows",
        ),
    ] = None
    of: Annotated[
        str, keys.choice("of", "links to which load= refers: links of hosts, or uplinks of leaves", OF)
    ] = HOSTS
    senders: Annotated[
        int,
        keys.integer(
            "senders",
            "maximum number of active flows to a receiver",
            least=1,
            absent="none",
            section="Spritz §V-B",
        ),
    ] = 0

    def __post_init__(self) -> None:
        """Refuse a spec without size= or cdf=, or without duration= and measure=."""
        self.sizes.check_given()
        if self.measure is None and self.duration_ns is None:
            raise SpecError("key 'duration' is missing")
        if self.measure is not None and self.loaded_ns < self.measure.until_ns:
            raise SpecError("duration must not end before measure does")

    @property
    def loaded_ns(self) -> int:
        """The time during which flows start."""
        if self.duration_ns is not None:
            return self.duration_ns
        assert self.measure is not None, "one of the two is given"
        return LOADED * self.measure.until_ns

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        # merges the flows of bursts, if there are any, into the Poisson arrivals
        return self.bursts.beside(self._arrivals(topology, rng), self.loaded_ns, topology, rng)

    def _arrivals(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        # the hosts of hot spots have no other flows; `chosen` with 0 returns all hosts
        burst_hosts = self.bursts.own_hosts(topology)
        hosts = [host for host in chosen(topology, 0, rng) if host.name not in burst_hosts]
        # `apart`: what must differ between sender and receiver: host, switch or group
        apart, sizes = self.peers.apart, self.sizes.distribution
        partners = pairs.Partners(hosts, pairs.groups_of(topology, hosts, apart))
        share = self.load
        if self.of == FABRIC:
            share = host_load(topology, hosts, apart, self.load)
        check_flows(expected_flows(hosts, sizes.mean_bytes, share, self.loaded_ns))
        slots = Slots(self.senders) if self.senders else None
        for start_ns, index in arrivals(hosts, sizes.mean_bytes, share, self.loaded_ns, rng):
            sender = hosts[index]
            measured = self.measure is None or self.measure.has(start_ns)
            flow_class = NO_CLASS if measured else BACKGROUND
            if slots is None:
                receiver, size_bytes = partners.draw(sender, rng), sizes.draw(rng)
            else:
                size_bytes = sizes.draw(rng)
                receiver = slots.choose(partial(partners.draw, sender, rng), start_ns)
                slots.take(receiver, start_ns, size_bytes)
            yield Transfer(sender, receiver, size_bytes, start_ns, flow_class=flow_class)
