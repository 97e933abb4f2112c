# SPDX-License-Identifier: Apache-2.0
"""Open loop: every host starts flows by a Poisson process of its own, whatever has become of earlier ones.

The load is the fraction of a host's link rate that its flows' bytes ask for on average, headers not counted:
a host with rate R starts `load * R / (8 * mean size)` flows a second.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from experiments import pairs
from experiments.patterns import chosen
from experiments.size_cdf import SizeCdf
from experiments.transfer import PatternError, Transfer
from topology import Host, Topology

_BIT_NS = 8_000_000_000


def exponential(rng: random.Random) -> float:
    """A number from the exponential distribution with mean 1.

    By comparisons alone (J. von Neumann, Various techniques used in connection with random digits, 1951), so
    that no machine's logarithm decides what a seed gives: a run of falling numbers that begins with x is of
    odd length with probability e^-x; runs of even length count towards the whole part.
    """
    whole = 0
    while True:
        first = last = rng.random()
        odd = True
        while (following := rng.random()) < last:
            last = following
            odd = not odd
        if odd:
            return whole + first
        whole += 1


@dataclass(frozen=True, slots=True)
class Poisson:
    """Poisson arrivals for `duration_ns`; receivers are drawn for each flow. Ids rise with the start."""

    sizes: SizeCdf
    load: float
    duration_ns: int
    remote: bool = False

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        hosts = chosen(topology, 0, rng)
        partners = pairs.Partners(hosts, pairs.groups_of(hosts, remote=self.remote))
        arrivals = [
            (start_ns, place) for place, host in enumerate(hosts) for start_ns in self._starts_ns(host, rng)
        ]
        if not arrivals:
            raise PatternError("no flow begins in so short a duration; expected a longer one, or more load")
        arrivals.sort()
        for start_ns, place in arrivals:
            sender = hosts[place]
            yield Transfer(sender, partners.draw(sender, rng), self.sizes.draw(rng), start_ns)

    def _starts_ns(self, host: Host, rng: random.Random) -> Iterator[int]:
        """When a host's flows start."""
        mean_gap_ns = self.sizes.mean_bytes * _BIT_NS / (self.load * host.rate_bps)
        time_ns = mean_gap_ns * exponential(rng)
        while time_ns < self.duration_ns:
            yield int(time_ns)
            time_ns += mean_gap_ns * exponential(rng)
