# SPDX-License-Identifier: Apache-2.0
"""The process of one rank of a network in virtual time, started by ranks.py.

    python -m tailrace.sim.rank NUMBER RANKS SOCKET MEMORY JOB

where it is not forked. The last three are descriptors: of a socket to the first rank, of the memory that all
share, and of a file with a pickled `RankJob`.
"""

from __future__ import annotations

import mmap
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from tailrace.sim.errors import RunError
from tailrace.sim.network.ranks import RankLostError, SharedMemory
from tailrace.sim.ranks import BAD_INPUT, NAME, RankJob
from tailrace.sim.run import PausedRun, run_part
from tailrace.spec import SpecError, plugins


def _read(job: int) -> RankJob:
    """The job.

    Raises:
        SpecError: a plug-in cannot be loaded here, or something of the job is of none.
    """
    plugins.load()
    with mmap.mmap(job, 0, access=mmap.ACCESS_READ) as file:
        try:
            part = pickle.loads(file)  # noqa: S301 - our own process has made it
        except (AttributeError, ImportError, pickle.UnpicklingError) as error:
            raise SpecError(f"ranks: only plug-ins can add to what several processes run: {error}") from error
    assert isinstance(part, RankJob)
    return part


def _serve(paused: PausedRun) -> None:
    # only breakpoints need a server
    from tailrace.sim.pause import serve_part

    serve_part(paused)


def run_rank(number: int, ranks: int, first: socket.socket, memory: int, read: Callable[[], RankJob]) -> int:
    """Runs a part to its end, and waits to be ended; 1 where it failed.

    Args:
        number: of this rank, from 1.
        ranks: how many there are.
        first: leads to the first, which hears there why this one failed.
        memory: descriptor of what all share.
        read: gives the job, or raises SpecError.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # for ps and top
    Path("/proc/self/comm").write_text(f"{NAME}{number}", "ascii")
    with first:
        try:
            part = read()
            transport = SharedMemory(memory, number, ranks, [first.fileno()])
            with plugins.blamed(f"rank {number}"):
                run_part(part, transport, _serve)
        except RankLostError:
            return 1
        except SpecError as error:
            first.sendall(f"{BAD_INPUT}\n{error}".encode())
            return 1
        except RunError as error:
            first.sendall(f"\n{error}".encode())
            return 1
        first.recv(1)
    return 0


def main(arguments: list[str]) -> int:
    """A process of its own."""
    number, ranks, descriptor, memory, job = map(int, arguments)
    return run_rank(number, ranks, socket.socket(fileno=descriptor), memory, lambda: _read(job))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
