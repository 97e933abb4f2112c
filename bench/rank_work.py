# SPDX-License-Identifier: Apache-2.0
"""How much ranks have to do between two meetings, and what a meeting costs; each call in its own process.

Ranks are threads here, of which one runs at a time: so the work of each is measured as if it had a core for
itself, however many there are. What they say to each other when they meet is measured between processes.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.ranks import Work
from tailrace.controller.reconcile import install_all
from tailrace.experiments.backends.job import Job
from tailrace.experiments.backends.virtual.nics import attach_nics
from tailrace.experiments.backends.virtual.uncollected import uncollected
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.native.virtual import Network
from tailrace.native.virtual.ranks import SharedMemory, Transport, shared_bytes
from tailrace.schemes.intent import intent

_NEVER_S = 1e6
"""Threads take turns only where they wait."""


class _Recorded:
    """A transport that writes down what its rank did before each meeting."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.rank = transport.rank
        self.ranks = transport.ranks
        self.cpu_s: list[float] = []
        self.sent_bytes: list[int] = []
        self._left_s = 0.0

    def begin(self) -> None:
        """All are ready: what was before does not count."""
        self._transport.exchange([b""] * self.ranks)
        self._left_s = time.thread_time()

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        self.cpu_s.append(time.thread_time() - self._left_s)
        self.sent_bytes.append(sum(map(len, messages)) - len(messages[self.rank]))
        found = self._transport.exchange(messages)
        self._left_s = time.thread_time()
        return found


def _run(job: Job, transport: _Recorded) -> None:
    with Network(job.topology, seed=job.seed, transport=transport) as network:
        own = {switch.name for switch in network.switches}
        install_all(network.p4rt, intent(job.topology, job.scheme, job.switches, names=own))
        attach_nics(network, job)
        transport.begin()
        network.run()
        transport.exchange([b""] * transport.ranks)


Speaking = tuple[SharedMemory, list[socket.socket]]
"""What a rank speaks by, and its sockets: who shuts them down has left."""


@contextmanager
def transports(ranks: int) -> Iterator[list[Speaking]]:
    """Of ranks that are threads of this process, or copies of it."""
    with ExitStack() as stack:
        memory = os.memfd_create("ranks")
        stack.callback(os.close, memory)
        os.ftruncate(memory, shared_bytes(ranks))
        pairs = [socket.socketpair() for _ in range(ranks - 1)]
        for one in (end for pair in pairs for end in pair):
            stack.callback(one.close)
        own = [[ours for ours, _ in pairs], *([theirs] for _, theirs in pairs)]
        yield [
            (SharedMemory(memory, rank, ranks, [one.fileno() for one in sockets]), sockets)
            for rank, sockets in enumerate(own)
        ]


def work(words: dict[str, object], ranks: int) -> Work:
    """Runs an experiment in so many parts, one after the other in each period."""
    sys.setswitchinterval(_NEVER_S)
    job = plan(make(words), "virtual").job
    with transports(ranks) as those, uncollected():
        each = [_Recorded(transport) for transport, _ in those]
        threads = [threading.Thread(target=_run, args=(job, one)) for one in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return Work(
        tuple(zip(*(one.cpu_s for one in each), strict=True)),
        tuple(zip(*(one.sent_bytes for one in each), strict=True)),
    )


def _meet(transport: Transport, size: int, meetings: int) -> float:
    messages = [bytes(size)] * transport.ranks
    transport.exchange(messages)
    began_s = time.process_time()
    for _ in range(meetings):
        transport.exchange(messages)
    return (time.process_time() - began_s) / meetings


def meeting_s(size: int, meetings: int) -> float:
    """CPU seconds of a meeting for one of two processes, which send each other `size` bytes."""
    with transports(2) as ((first, _), (second, _)):
        other = multiprocessing.get_context("fork").Process(target=_meet, args=(second, size, meetings))
        other.start()
        found = _meet(first, size, meetings)
        other.join()
    return found
