# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of this process, over the same shared memory: cheap to start, and one may be made to fail."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from tailrace.native.virtual.ranks import SharedMemory, shared_bytes

T = TypeVar("T")


@contextmanager
def transports(ranks: int) -> Iterator[list[tuple[SharedMemory, Callable[[], None]]]]:
    """What each rank speaks by, and a function by which it goes; who is in a thread need not be joined."""
    with ExitStack() as stack:
        memory = os.memfd_create("ranks")
        stack.callback(os.close, memory)
        os.ftruncate(memory, shared_bytes(ranks))
        pairs = [socket.socketpair() for _ in range(ranks - 1)]
        for one in (end for pair in pairs for end in pair):
            stack.callback(one.close)
        first = SharedMemory(memory, 0, ranks, [ours.fileno() for ours, _ in pairs])
        others = [
            SharedMemory(memory, number, ranks, [theirs.fileno()])
            for number, (_, theirs) in enumerate(pairs, start=1)
        ]

        def leave() -> None:
            for ours, _ in pairs:
                ours.shutdown(socket.SHUT_RDWR)

        yield [
            (first, leave),
            *(
                (other, lambda end=pair[1]: end.shutdown(socket.SHUT_RDWR))
                for other, pair in zip(others, pairs, strict=True)
            ),
        ]


def run_ranks(ranks: int, run: Callable[[SharedMemory], T]) -> list[T]:
    """What each rank's call gives, by rank; of errors the first that one raised."""
    found: dict[int, T] = {}
    errors: list[Exception] = []

    def go(transport: SharedMemory, leave: Callable[[], None]) -> None:
        try:
            found[transport.rank] = run(transport)
        except Exception as error:
            errors.append(error)
            leave()

    with transports(ranks) as each:
        threads = [threading.Thread(target=go, args=one) for one in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return [found[rank] for rank in range(ranks)]
