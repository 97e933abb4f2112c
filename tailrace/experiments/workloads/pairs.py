# SPDX-License-Identifier: Apache-2.0
"""Pairs of sender and receiver: pure functions of hosts, their groups and a random number generator.

No host sends into its own group. The group of a host is the host itself; or its switch, so that every packet
crosses the fabric (the rule of CONGA, used in Flowcut §III-B2); or its switch's group, so that every packet
uses links between groups (Spritz §V-B).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from tailrace.experiments.workloads.transfer import PatternError
from tailrace.topology import Host, Topology

Pair = tuple[Host, Host]

HOSTS, SWITCHES, GROUPS = APART = ("any", "remote", "group")
"""What must differ between sender and receiver, as values of peers=: host, switch, or group of switches."""


def groups_of(topology: Topology, hosts: Sequence[Host], apart: str) -> list[str]:
    """The group of each host: itself, its switch, or its switch's group, by `apart`, one of APART.

    Raises:
        PatternError: the topology does not have groups of switches.
    """
    if apart == HOSTS:
        return [host.name for host in hosts]
    if apart == SWITCHES:
        return [host.switch for host in hosts]
    numbers = [topology.switch(host.switch).group for host in hosts]
    if min(numbers) < 0:
        raise PatternError(f"peers={GROUPS}: the topology has no groups")
    return [str(number) for number in numbers]


def check_partners(groups: Sequence[Hashable]) -> None:
    """Raises PatternError if all hosts are in one group, so that no host can send."""
    if len(set(groups)) < 2:
        raise PatternError("all hosts are on one switch, or in one group, and flows must leave it")


def permutation(hosts: Sequence[Host], groups: Sequence[Hashable], rng: random.Random) -> list[Pair] | None:
    """A random permutation in which no host sends into its own group; None if there is no such permutation.

    Args:
        hosts: the senders, and the receivers.
        groups: the group of each host.

    A random order is repaired by swaps. While host i sends into its own group g, at most |g| - 1 hosts
    outside g send into g; so if g holds no more than half of the hosts, some host outside g sends outside
    g, and swapping the two receivers repairs i and breaks no other host. Such a swap always exists.
    """
    count = len(hosts)
    if not hosts or 2 * max(Counter(groups).values()) > count:
        return None
    senders = range(count)
    targets = list(senders)  # the index of each sender's receiver
    rng.shuffle(targets)
    for i in senders:
        group = groups[i]
        if groups[targets[i]] != group:
            continue
        partners = [j for j in senders if groups[j] != group and groups[targets[j]] != group]
        j = rng.choice(partners)
        targets[i], targets[j] = targets[j], targets[i]
    pairs = [(hosts[i], hosts[targets[i]]) for i in senders]
    rng.shuffle(pairs)
    return pairs


def all_to_all(hosts: Sequence[Host], groups: Sequence[Hashable], rounds: int = 0) -> Iterator[Pair]:
    """The pairs of every host with every other, in rounds: in round r each sends to the r-th host after it.

    Args:
        hosts: the senders, and the receivers.
        groups: the group of each host.
        rounds: number of rounds, evenly spaced from the first one on, so that near and far receivers have the
            same share as in all rounds; 0: all.
    """
    count = len(hosts)
    rounds = rounds or count - 1
    for number in range(rounds):
        shift = 1 + number * (count - 1) // rounds
        for i in range(count):
            j = (i + shift) % count
            if groups[i] != groups[j]:
                yield hosts[i], hosts[j]


class Partners:
    """Draws receivers uniformly from all hosts outside the sender's group."""

    def __init__(self, hosts: Sequence[Host], groups: Sequence[str]) -> None:
        """Raises PatternError if a host has no partner."""
        members: dict[str, list[Host]] = {}
        for host, group in zip(hosts, groups, strict=True):
            members.setdefault(group, []).append(host)
        check_partners(groups)
        self._hosts = [host for inside in members.values() for host in inside]
        self._group_range: dict[str, tuple[int, int]] = {}
        begin = 0
        for inside in members.values():
            self._group_range.update((host.name, (begin, len(inside))) for host in inside)
            begin += len(inside)

    def draw(self, sender: Host, rng: random.Random) -> Host:
        begin, count = self._group_range[sender.name]
        index = rng.randrange(len(self._hosts) - count)
        return self._hosts[index if index < begin else index + count]
