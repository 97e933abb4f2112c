# SPDX-License-Identifier: Apache-2.0
"""Who sends to whom: pure functions of a topology and a random number generator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence

from topology import Host

Pair = tuple[Host, Host]


def permutation(hosts: Sequence[Host], groups: Sequence[Hashable], rng: random.Random) -> list[Pair] | None:
    """A random permutation in which no host sends into its own group; None where there is none.

    Args:
        hosts: the senders, and the receivers.
        groups: the group of each host: the host itself, or its switch.

    A random order is repaired by swaps. While host i sends into its own group g, at most |g| - 1 hosts
    outside g send into g; so if g holds no more than half of the hosts, some host outside g sends outside
    g, and swapping the two receivers leaves i repaired and breaks nothing. Such a swap always exists, and
    each repairs one host.
    """
    count = len(hosts)
    if not hosts or 2 * max(Counter(groups).values()) > count:
        return None
    order = list(range(count))
    targets = order.copy()
    rng.shuffle(targets)
    for i in order:
        group = groups[i]
        if groups[targets[i]] != group:
            continue
        partners = [j for j in order if groups[j] != group and groups[targets[j]] != group]
        j = rng.choice(partners)
        targets[i], targets[j] = targets[j], targets[i]
    pairs = [(hosts[i], hosts[targets[i]]) for i in order]
    rng.shuffle(pairs)
    return pairs


def all_to_all(hosts: Sequence[Host]) -> list[Pair]:
    """Every host to every other, in rounds: in round r each sends to the r-th host after it."""
    count = len(hosts)
    return [(hosts[i], hosts[(i + shift) % count]) for shift in range(1, count) for i in range(count)]


def incast(hosts: Sequence[Host], degree: int, rng: random.Random) -> list[Pair]:
    """`degree` random senders to one random receiver; needs more hosts than `degree`."""
    receiver, *senders = rng.sample(list(hosts), degree + 1)
    return [(sender, receiver) for sender in senders]


def random_pairs(hosts: Sequence[Host], count: int, rng: random.Random) -> list[Pair]:
    """`count` pairs of two different hosts each, drawn independently; needs two hosts."""
    drawn = (rng.sample(list(hosts), 2) for _ in range(count))
    return [(sender, receiver) for sender, receiver in drawn]
