# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of this process, over the same shared memory: cheap to start, and one may be made to fail."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from tailrace.sim.network.ranks import SharedMemory, shared_bytes

T = TypeVar("T")

Endpoint = tuple[SharedMemory, list[socket.socket]]
"""The transport of a rank, and its sockets: who shuts them down has left."""


@contextmanager
def transports(ranks: int) -> Iterator[list[Endpoint]]:
    """Of ranks that are threads of this process, or copies of it."""
    with ExitStack() as stack:
        memory = os.memfd_create("ranks")
        stack.callback(os.close, memory)
        os.ftruncate(memory, shared_bytes(ranks))
        pairs = [socket.socketpair() for _ in range(ranks - 1)]
        for end in (end for pair in pairs for end in pair):
            stack.callback(end.close)
        by_rank = [[first for first, _ in pairs], *([second] for _, second in pairs)]
        yield [
            (SharedMemory(memory, rank, ranks, [end.fileno() for end in sockets]), sockets)
            for rank, sockets in enumerate(by_rank)
        ]


def leave(sockets: list[socket.socket]) -> None:
    """The rank of these goes; who is in a thread need not be joined."""
    for sock in sockets:
        sock.shutdown(socket.SHUT_RDWR)


def run_ranks(ranks: int, run: Callable[[SharedMemory], T]) -> list[T]:
    """The result of each rank's call, by rank. Raises the first error that any rank raised."""
    results: dict[int, T] = {}
    errors: list[Exception] = []

    def go(transport: SharedMemory, sockets: list[socket.socket]) -> None:
        try:
            results[transport.rank] = run(transport)
        except Exception as error:
            errors.append(error)
            leave(sockets)

    with transports(ranks) as each:
        threads = [threading.Thread(target=go, args=arguments) for arguments in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(ranks)]
