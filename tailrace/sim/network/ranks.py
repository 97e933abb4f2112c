# SPDX-License-Identifier: Apache-2.0
"""Ranks: parts of a virtual network in processes of their own, and their message exchange.

Every rank makes the same calls at the same virtual times, on a network of which it has its own part; what
concerns another part does nothing here. `tv_ranks.c` says how they keep time. Ranks on one machine speak
through shared memory; a `RankTransport` of another kind may do so otherwise.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from tailrace.sim.network.build import extension
from tailrace.sim.network.errors import NetworkError


class RankLostError(NetworkError):
    """Another rank has gone."""


class RankTransport(Protocol):
    """What carries messages between ranks."""

    rank: int
    """This one, from 0."""
    ranks: int
    """How many there are."""

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """Sends each rank one message, and gives what each has sent here, once all have; both by rank.

        Raises:
            RankLostError: one of them has gone.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExchangeCounts:
    """Exchanges of a rank with its peers since the start.

    `meetings` counts exchanges, `frames` and `bytes` what this rank sent, bytes being those of messages;
    `waited_s` is the real time spent waiting for the peers' messages.
    """

    meetings: int
    frames: int
    bytes: int
    waited_s: float


class TimedTransport:
    """A transport that measures the real time spent in exchanges."""

    def __init__(self, transport: RankTransport) -> None:
        self._transport = transport
        self.rank = transport.rank
        self.ranks = transport.ranks
        self.waited_s = 0.0

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """As the transport does."""
        began_s = time.perf_counter()
        received = self._transport.exchange(messages)
        self.waited_s += time.perf_counter() - began_s
        return received


def shared_bytes(ranks: int) -> int:
    """The size of the memory that so many ranks share."""
    return cast("int", extension().shared_bytes(ranks))


class SharedMemory:
    """Messages between the ranks of one machine through shared memory."""

    def __init__(self, descriptor: int, rank: int, ranks: int, peers: Sequence[int]) -> None:
        """Args:
        descriptor: a file of `shared_bytes`, zeros at first, in memory.
        peers: sockets to the other ranks; a closed one means that its rank has ended.
        """
        self.rank = rank
        self.ranks = ranks
        self._memory = mmap.mmap(descriptor, shared_bytes(ranks))
        self._peers = list(peers)

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        received = extension().exchange(self._memory, self.rank, self.ranks, self._peers, messages)
        if received is None:
            raise RankLostError("another rank has gone")
        return cast("list[bytes]", received)
