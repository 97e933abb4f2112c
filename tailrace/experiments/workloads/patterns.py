# SPDX-License-Identifier: Apache-2.0
"""Patterns whose transfers (messages from a host to a host) start at given times, or wait only for other
transfers of the same sender.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.background import with_background
from tailrace.experiments.workloads.registry import (
    BACKGROUND,
    BY_HOST,
    DEFAULT_BYTES,
    IN_TOTAL,
    JITTER,
    ORDER,
    RANDOM,
    SIZE,
    TAKING_PART,
    Peers,
    Sizes,
    register,
)
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import SpecError, keys
from tailrace.topology import Host, Topology


def chosen(topology: Topology, count: int, rng: random.Random, order: str = BY_HOST) -> list[Host]:
    """`count` hosts drawn at random, in the topology's order or in random order; if `count` is 0, all hosts.

    Raises:
        PatternError: the topology has fewer hosts than `count`, or fewer than two.
    """
    hosts = topology.hosts
    if len(hosts) < 2:
        raise PatternError("the topology has fewer than two hosts")
    if count > len(hosts):
        raise PatternError(f"hosts must be at most {len(hosts)}, the number of hosts of the topology")
    drawn = sorted(rng.sample(range(len(hosts)), count)) if count else list(range(len(hosts)))
    if order == RANDOM:
        rng.shuffle(drawn)
    return [hosts[index] for index in drawn]


def named(topology: Topology, name: str) -> Host:
    """The host with this name.

    Raises:
        PatternError: the topology has no such host.
    """
    for host in topology.hosts:
        if host.name == name:
            return host
    raise PatternError(f"the topology has no host {name!r}")


@register("permutation", "every host sends to one other host and receives from one other host")
class Permutation(msgspec.Struct, frozen=True):
    """Every host sends to one other host and receives from one host; further flows repeat these pairs."""

    sizes: Sizes
    peers: Peers
    flows_total: Annotated[int, IN_TOTAL] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, 0, rng)
        apart, sizes = self.peers.apart, self.sizes.distribution
        permuted = pairs.permutation(hosts, pairs.groups_of(topology, hosts, apart), rng)
        if permuted is None:
            group = "group" if apart == pairs.GROUPS else "switch"
            raise PatternError(
                f"peers={apart} needs a topology in which no {group} has more than half of the hosts"
            )
        check_flows(self.flows_total)
        for number in range(self.flows_total or len(permuted)):
            size_bytes = sizes.draw(rng)
            yield Transfer(*permuted[number % len(permuted)], size_bytes, rng.randint(0, self.jitter_ns))


@register("alltoall", "every host sends to every other host")
class AllToAll(msgspec.Struct, frozen=True):
    """Every host sends a flow to every other host.

    With a window, at most `window` flows of a sender are active at a time: each flow waits until the flow
    that is `window` positions earlier in the sender's sequence is complete. In a round each host sends one
    flow and receives one flow. With `rounds`, a large pattern is reduced to this number of rounds.
    """

    peers: Peers
    size_bytes: Annotated[int, SIZE] = DEFAULT_BYTES
    window: Annotated[
        int, keys.integer("window", "maximum number of active flows of a sender", least=1, absent="all")
    ] = 0
    rounds: Annotated[
        int,
        keys.integer(
            "rounds",
            "number of rounds (in each, every host sends one flow), evenly chosen from all",
            least=1,
            absent="all",
        ),
    ] = 0
    hosts_total: Annotated[int, TAKING_PART] = 0
    order: Annotated[str, ORDER] = BY_HOST
    background_bytes: Annotated[int, BACKGROUND] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        return with_background(self._all_to_all(topology, rng), self.background_bytes, topology, rng)

    def _all_to_all(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, self.hosts_total, rng, self.order)
        groups = pairs.groups_of(topology, hosts, self.peers.apart)
        pairs.check_partners(groups)
        if self.rounds >= len(hosts):
            raise PatternError(
                f"rounds must be less than {len(hosts)}, the number of hosts, found {self.rounds}"
            )
        check_flows(len(hosts) * (self.rounds or len(hosts) - 1))
        # by sender, the numbers of its last `window` transfers
        last_of: dict[str, deque[int]] = {host.name: deque(maxlen=self.window) for host in hosts}
        for number, (sender, receiver) in enumerate(pairs.all_to_all(hosts, groups, self.rounds), start=1):
            last = last_of[sender.name]
            after = (last[0],) if self.window and len(last) == self.window else ()
            last.append(number)
            yield Transfer(sender, receiver, self.size_bytes, rng.randint(0, self.jitter_ns), after)


@register("random", "flows between random pairs of hosts, or messages from every host to random hosts")
class Random(msgspec.Struct, frozen=True):
    """Flows between random pairs of hosts, all started at once; or, with `messages`, a sequence per host.

    In a sequence each message has a newly drawn receiver, and starts when the previous message has been
    acknowledged (Flowcut §III-B2). The first messages of all hosts have the lowest flow ids, then come all
    second messages, and so on.
    """

    sizes: Sizes
    peers: Peers
    flows_total: Annotated[int, IN_TOTAL] = 0
    messages: Annotated[
        int,
        keys.integer(
            "messages",
            "number of messages that each host sends, one after the other",
            least=1,
            absent="independent flows",
        ),
    ] = 0
    jitter_ns: Annotated[int, JITTER] = 0

    def __post_init__(self) -> None:
        """Refuse both flows= and messages=."""
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
        # for each host, the number of its previous transfer; transfers are numbered from 1
        previous: Sequence[tuple[int, ...]] = [()] * len(hosts)
        for message in range(self.messages):
            for host, start_ns, after in zip(hosts, starts_ns, previous, strict=True):
                receiver = partners.draw(host, rng)
                yield Transfer(host, receiver, sizes.draw(rng), start_ns, after)
            previous = [(message * len(hosts) + number,) for number in range(1, len(hosts) + 1)]
