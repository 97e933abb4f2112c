# SPDX-License-Identifier: Apache-2.0
"""Patterns whose transfers all start by the clock, or wait only for the sender's own."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.experiments.plan.reckon import check_flows
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.topology import Host, Topology


def chosen(topology: Topology, count: int, rng: random.Random) -> list[Host]:
    """`count` hosts drawn at random, in their order; all for 0.

    Raises:
        PatternError: the topology has not so many, or they are fewer than two.
    """
    hosts = topology.hosts
    if len(hosts) < 2:
        raise PatternError("the topology has no two hosts")
    if count > len(hosts):
        raise PatternError(f"hosts must be no more than the topology has, {len(hosts)}")
    if not count:
        return list(hosts)
    return [hosts[index] for index in sorted(rng.sample(range(len(hosts)), count))]


def named(topology: Topology, name: str) -> Host:
    """The host with a name.

    Raises:
        PatternError: there is none.
    """
    for host in topology.hosts:
        if host.name == name:
            return host
    raise PatternError(f"the topology has no host {name!r}")


@dataclass(frozen=True, slots=True)
class Permutation:
    """Every host sends to one other and hears from one; with more flows than hosts, they are dealt round."""

    sizes: SizeCdf
    apart: str = pairs.HOSTS
    flows_total: int = 0
    jitter_ns: int = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        hosts = chosen(topology, 0, rng)
        once = pairs.permutation(hosts, pairs.groups_of(topology, hosts, self.apart), rng)
        if once is None:
            place = "group" if self.apart == pairs.GROUPS else "switch"
            raise PatternError(
                f"peers={self.apart} needs a topology in which no {place} has more than half of the hosts"
            )
        check_flows(self.flows_total)
        for number in range(self.flows_total or len(once)):
            size_bytes = self.sizes.draw(rng)
            yield Transfer(*once[number % len(once)], size_bytes, rng.randint(0, self.jitter_ns))


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Every host sends to every other; with a window, a flow waits for the one that many before it.

    So a host's flows are `window` chains, and no more than that many of them are under way at a time.
    """

    size_bytes: int
    apart: str = pairs.HOSTS
    hosts_total: int = 0
    window: int = 0
    jitter_ns: int = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        hosts = chosen(topology, self.hosts_total, rng)
        groups = pairs.groups_of(topology, hosts, self.apart)
        pairs.check_partners(groups)
        check_flows(len(hosts) * (len(hosts) - 1))
        latest: dict[str, deque[int]] = {host.name: deque(maxlen=self.window) for host in hosts}
        for number, (sender, receiver) in enumerate(pairs.all_to_all(hosts, groups), start=1):
            sent = latest[sender.name]
            after = (sent[0],) if self.window and len(sent) == self.window else ()
            sent.append(number)
            yield Transfer(sender, receiver, self.size_bytes, rng.randint(0, self.jitter_ns), after)


@dataclass(frozen=True, slots=True)
class RandomPairs:
    """Pairs drawn independently, all at once; 0 flows: as many as hosts."""

    sizes: SizeCdf
    apart: str = pairs.HOSTS
    flows_total: int = 0
    jitter_ns: int = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        hosts = chosen(topology, 0, rng)
        partners = pairs.Partners(hosts, pairs.groups_of(topology, hosts, self.apart))
        check_flows(self.flows_total)
        for _ in range(self.flows_total or len(hosts)):
            sender = rng.choice(hosts)
            receiver = partners.draw(sender, rng)
            yield Transfer(sender, receiver, self.sizes.draw(rng), rng.randint(0, self.jitter_ns))


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Every host sends one message after the other, each to a partner of its own (Flowcut §III-B2).

    A host's next message starts when the one before it has been acknowledged. Ids rise in rounds: the m-th
    messages of all hosts, then the next ones.
    """

    sizes: SizeCdf
    messages: int
    apart: str = pairs.HOSTS
    jitter_ns: int = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        """See Pattern."""
        hosts = chosen(topology, 0, rng)
        partners = pairs.Partners(hosts, pairs.groups_of(topology, hosts, self.apart))
        check_flows(self.messages * len(hosts))
        starts_ns = [rng.randint(0, self.jitter_ns) for _ in hosts]
        before: Sequence[tuple[int, ...]] = [()] * len(hosts)
        for message in range(self.messages):
            for host, start_ns, after in zip(hosts, starts_ns, before, strict=True):
                receiver = partners.draw(host, rng)
                yield Transfer(host, receiver, self.sizes.draw(rng), start_ns, after)
            before = [(message * len(hosts) + place,) for place in range(1, len(hosts) + 1)]
