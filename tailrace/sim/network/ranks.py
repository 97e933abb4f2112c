# SPDX-License-Identifier: Apache-2.0
"""Ranks: parts of a virtual network in separate processes, and their message exchange.

Every rank makes the same calls at the same virtual times; it runs one part of the network, and a call that
concerns another part has no effect here. `tv_ranks.c` says how ranks synchronise their clocks. Ranks on one
machine communicate through shared memory; another `RankTransport` may use other means (MPI).
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec

from tailrace.sim.network.build import extension
from tailrace.sim.network.errors import NetworkError


class RankLostError(NetworkError):
    """Another rank has ended."""


class RankTransport(Protocol):
    """Carries messages between ranks."""

    rank: int
    """The index of this rank, from 0."""
    ranks: int
    """The number of ranks."""

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """Sends one message to each rank, waits for a message from each rank, and returns the received
        messages. Both lists are in the order of ranks.

        Raises:
            RankLostError: a rank has ended.
        """
        ...


class ExchangeCounts(msgspec.Struct, frozen=True):
    """Exchanges of a rank with its peers since the start.

    `meetings` is the number of exchanges, `frames` the number of frames that this rank sent to others,
    `bytes` the size of all its messages, `waited_s` the real time spent waiting for the peers' messages.
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
        """Calls the transport's `exchange`, and measures its time."""
        began_s = time.perf_counter()
        received = self._transport.exchange(messages)
        self.waited_s += time.perf_counter() - began_s
        return received


def shared_bytes(ranks: int) -> int:
    """The size in bytes of the shared memory that `ranks` ranks need."""
    return cast("int", extension().shared_bytes(ranks))


class SharedMemory:
    """Messages between the ranks of one machine through shared memory."""

    def __init__(self, descriptor: int, rank: int, ranks: int, peers: Sequence[int]) -> None:
        """Args:
        descriptor: of a file in memory with `shared_bytes` bytes, all zero at first.
        peers: descriptors of sockets to other ranks; if one is closed, its rank has ended.
        """
        self.rank = rank
        self.ranks = ranks
        self._memory = mmap.mmap(descriptor, shared_bytes(ranks))
        self._peers = list(peers)

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        received = extension().exchange(self._memory, self.rank, self.ranks, self._peers, messages)
        if received is None:
            raise RankLostError("another rank has ended")
        return cast("list[bytes]", received)
