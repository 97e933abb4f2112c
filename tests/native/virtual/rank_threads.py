# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of this process, over the same shared memory: cheap to start, and one may be made to fail."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import TypeVar

from bench.rank_work import transports
from tailrace.native.virtual.ranks import SharedMemory

T = TypeVar("T")


def leave(sockets: list[socket.socket]) -> None:
    """The rank of these goes; who is in a thread need not be joined."""
    for one in sockets:
        one.shutdown(socket.SHUT_RDWR)


def run_ranks(ranks: int, run: Callable[[SharedMemory], T]) -> list[T]:
    """What each rank's call gives, by rank; of errors the first that one raised."""
    found: dict[int, T] = {}
    errors: list[Exception] = []

    def go(transport: SharedMemory, sockets: list[socket.socket]) -> None:
        try:
            found[transport.rank] = run(transport)
        except Exception as error:
            errors.append(error)
            leave(sockets)

    with transports(ranks) as each:
        threads = [threading.Thread(target=go, args=one) for one in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return [found[rank] for rank in range(ranks)]
