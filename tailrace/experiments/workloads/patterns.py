# SPDX-License-Identifier: Apache-2.0
"""Patterns whose transfers all start by the clock, or wait only for the sender's own."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.background import shared
from tailrace.experiments.workloads.registry import (
    BACKGROUND,
    DEFAULT_BYTES,
    IN_TOTAL,
    JITTER,
    SIZE,
    TAKING_PART,
    Peers,
    Sizes,
    register,
)
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import SpecError, keys
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


@register("permutation", "every host sends to one other and hears from one")
@dataclass(frozen=True, slots=True)
class Permutation:
    """Every host sends to one other and hears from one; with more flows than hosts, they are dealt round."""

    sizes: Sizes
    peers: Peers
    flows_total: Annotated[int, IN_TOTAL] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, 0, rng)
        apart, sizes = self.peers.apart, self.sizes.distribution
        once = pairs.permutation(hosts, pairs.groups_of(topology, hosts, apart), rng)
        if once is None:
            group = "group" if apart == pairs.GROUPS else "switch"
            raise PatternError(
                f"peers={apart} needs a topology in which no {group} has more than half of the hosts"
            )
        check_flows(self.flows_total)
        for number in range(self.flows_total or len(once)):
            size_bytes = sizes.draw(rng)
            yield Transfer(*once[number % len(once)], size_bytes, rng.randint(0, self.jitter_ns))


@register("alltoall", "every host sends to every other")
@dataclass(frozen=True, slots=True)
class AllToAll:
    """Every host sends to every other; with a window, a flow waits for the one that many before it.

    So a host's flows are `window` chains, and no more than that many of them are under way at a time.
    Of a large one a few rounds tell what all of them come to: in a round each host sends one flow and hears
    one.
    """

    peers: Peers
    size_bytes: Annotated[int, SIZE] = DEFAULT_BYTES
    window: Annotated[
        int, keys.integer("window", "flows that a host has under way at most", least=1, absent="all")
    ] = 0
    rounds: Annotated[
        int,
        keys.integer("rounds", "of as many as there are other hosts, evenly spread", least=1, absent="all"),
    ] = 0
    hosts_total: Annotated[int, TAKING_PART] = 0
    background_bytes: Annotated[int, BACKGROUND] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        return shared(self._own(topology, rng), self.background_bytes, topology, rng)

    def _own(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, self.hosts_total, rng)
        groups = pairs.groups_of(topology, hosts, self.peers.apart)
        pairs.check_partners(groups)
        if self.rounds >= len(hosts):
            raise PatternError(f"rounds must be less than there are hosts, {len(hosts)}, found {self.rounds}")
        check_flows(len(hosts) * (self.rounds or len(hosts) - 1))
        latest: dict[str, deque[int]] = {host.name: deque(maxlen=self.window) for host in hosts}
        for number, (sender, receiver) in enumerate(pairs.all_to_all(hosts, groups, self.rounds), start=1):
            sent = latest[sender.name]
            after = (sent[0],) if self.window and len(sent) == self.window else ()
            sent.append(number)
            yield Transfer(sender, receiver, self.size_bytes, rng.randint(0, self.jitter_ns), after)


@register("random", "pairs drawn at random, or messages of every host to partners that are")
@dataclass(frozen=True, slots=True)
class Random:
    """Pairs drawn independently, all at once; or every host sends one message after the other, each to a
    partner of its own (Flowcut §III-B2): the next one starts when the one before it has been acknowledged.
    Ids rise in rounds then: the m-th messages of all hosts, then the next ones.
    """

    sizes: Sizes
    peers: Peers
    flows_total: Annotated[int, IN_TOTAL] = 0
    messages: Annotated[
        int,
        keys.integer("messages", "of each host, one after the other", least=1, absent="all flows at once"),
    ] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.messages and self.flows_total:
            raise SpecError("expected either flows= or messages=")

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, 0, rng)
        partners = pairs.Partners(hosts, pairs.groups_of(topology, hosts, self.peers.apart))
        if self.messages:
            yield from self._in_rounds(hosts, partners, rng)
            return
        check_flows(self.flows_total)
        sizes = self.sizes.distribution
        for _ in range(self.flows_total or len(hosts)):
            sender = rng.choice(hosts)
            receiver = partners.draw(sender, rng)
            yield Transfer(sender, receiver, sizes.draw(rng), rng.randint(0, self.jitter_ns))

    def _in_rounds(
        self, hosts: Sequence[Host], partners: pairs.Partners, rng: random.Random
    ) -> Iterator[Transfer]:
        check_flows(self.messages * len(hosts))
        sizes = self.sizes.distribution
        starts_ns = [rng.randint(0, self.jitter_ns) for _ in hosts]
        before: Sequence[tuple[int, ...]] = [()] * len(hosts)
        for message in range(self.messages):
            for host, start_ns, after in zip(hosts, starts_ns, before, strict=True):
                receiver = partners.draw(host, rng)
                yield Transfer(host, receiver, sizes.draw(rng), start_ns, after)
            before = [(message * len(hosts) + number,) for number in range(1, len(hosts) + 1)]
