# SPDX-License-Identifier: Apache-2.0
"""Allreduce: every host ends with the sum of all hosts' vectors, by messages that wait for one another.

ring       the vector has n parts; in each of 2(n-1) steps every host sends to its right neighbour the part
           that it has just received: first to sum the parts up (n-1 steps), then to spread the sums.
           P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
           2009.
butterfly  recursive doubling: in step k of log2 n, hosts whose ranks (numbers from 0, by the key
           `order`) differ in bit k exchange whole vectors.
halving    recursive halving, then doubling, also called Rabenseifner's algorithm: in step k of log2 n, each
           host sends its partner the half of its remaining parts that the partner sums up; then the same
           pairs exchange the sums in reverse order.

For the last two see R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication
Operations in MPICH, 2005, §4. A message waits for all messages that its sender must have received before;
computations take no time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import msgspec

from tailrace.experiments.plan.size_estimate import check_flows
from tailrace.experiments.workloads.background import with_background
from tailrace.experiments.workloads.patterns import chosen
from tailrace.experiments.workloads.registry import (
    BACKGROUND,
    BY_HOST,
    DEFAULT_BYTES,
    ORDER,
    TAKING_PART,
    register,
)
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import keys
from tailrace.topology import Host, Topology


class Message(msgspec.Struct, frozen=True):
    """One message of a collective.

    sender, receiver: ranks of the hosts.
    first_part, parts: the message carries `parts` consecutive parts of the vector, from index `first_part`.
    total_parts: number of equal parts into which the vector is cut.
    after: messages for which it waits; with `count` hosts, the message of rank r in step k has the number
        k * count + r + 1.
    spreads: the receiver replaces its parts by these sums; otherwise it adds them to its parts.
    """

    sender: int
    receiver: int
    first_part: int
    parts: int
    total_parts: int
    after: tuple[int, ...]
    spreads: bool

    def size_bytes(self, vector_bytes: int) -> int:
        """The message's size; of a vector without equal parts, the first parts are one byte longer."""
        size, longer = divmod(vector_bytes, self.total_parts)
        return self.parts * size + max(0, min(self.first_part + self.parts, longer) - self.first_part)


def ring(count: int) -> Iterator[Message]:
    """The messages of a ring of `count` hosts, step by step."""
    for step in range(2 * (count - 1)):
        for rank in range(count):
            left = (rank - 1) % count
            # the part to send has arrived from the left neighbour in the step before
            after = ((step - 1) * count + left + 1,) if step else ()
            part = (rank - step) % count
            yield Message(rank, (rank + 1) % count, part, 1, count, after, step >= count - 1)


def butterfly(count: int) -> Iterator[Message]:
    """The messages of recursive doubling; `count` is a power of two."""
    for step in range(count.bit_length() - 1):
        for rank in range(count):
            # all earlier steps: the last partner's message may arrive before those of earlier partners
            after = tuple(k * count + (rank ^ 1 << k) + 1 for k in range(step))
            yield Message(rank, rank ^ 1 << step, 0, 1, 1, after, spreads=False)


def halving(count: int) -> Iterator[Message]:
    """The messages of recursive halving and doubling; `count` is a power of two."""
    steps = count.bit_length() - 1
    # the rank bit in which the partners of each step differ: the pieces shrink, then grow again
    bits = [*reversed(range(steps)), *range(steps)]
    for step, bit in enumerate(bits):
        spreads = step >= steps
        for rank in range(count):
            partner = rank ^ 1 << bit
            # the rank that sums up the parts sent; they begin at a multiple of their number, 1 << bit
            owner = rank if spreads else partner
            after = tuple(k * count + (rank ^ 1 << bits[k]) + 1 for k in range(step))
            yield Message(rank, partner, owner >> bit << bit, 1 << bit, count, after, spreads)


ALGORITHMS: Mapping[str, Callable[[int], Iterator[Message]]] = {
    "ring": ring,
    "butterfly": butterfly,
    "halving": halving,
}
_POWERS_OF_TWO = ("butterfly", "halving")


def _messages(algorithm: str, count: int) -> int:
    """How many messages each of `count` hosts sends."""
    if algorithm == "ring":
        return 2 * (count - 1)
    steps = (count - 1).bit_length()
    return steps if algorithm == "butterfly" else 2 * steps


@register("allreduce", "one allreduce of a vector among all hosts, or a random subset")
class Allreduce(msgspec.Struct, frozen=True):
    """One allreduce of a vector among `hosts_total` hosts drawn at random; 0 means all hosts."""

    algorithm: Annotated[str, keys.choice("algo", "allreduce algorithm", tuple(ALGORITHMS))] = "ring"
    size_bytes: Annotated[int, keys.size("size", "size of the vector", least=1)] = DEFAULT_BYTES
    hosts_total: Annotated[int, TAKING_PART] = 0
    order: Annotated[str, ORDER] = BY_HOST
    background_bytes: Annotated[int, BACKGROUND] = 0

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        return with_background(self._collective(topology, rng), self.background_bytes, topology, rng)

    def _collective(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, self.hosts_total, rng, self.order)
        self._check(hosts)
        check_flows(len(hosts) * _messages(self.algorithm, len(hosts)))
        for message in ALGORITHMS[self.algorithm](len(hosts)):
            yield Transfer(
                hosts[message.sender],
                hosts[message.receiver],
                message.size_bytes(self.size_bytes),
                after=message.after,
            )

    def _check(self, hosts: list[Host]) -> None:
        count = len(hosts)
        if self.algorithm in _POWERS_OF_TWO and count & (count - 1):
            raise PatternError(f"algo={self.algorithm} needs hosts= to be a power of two, found {count}")
        if self.algorithm != "butterfly" and self.size_bytes < count:
            raise PatternError(f"size must be at least {count}, a byte per host, found {self.size_bytes}")
