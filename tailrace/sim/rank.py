# SPDX-License-Identifier: Apache-2.0
"""A rank: one of the processes that together simulate a network in virtual time. ranks.py starts it.

    python -m tailrace.sim.rank NUMBER RANKS SOCKET MEMORY JOB

This command starts a rank that is not forked. The last three arguments are file descriptors: of a socket to
the first rank, of the memory that all ranks share, and of a file with a pickled `RankJob`.
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
    """Reads the job from a file descriptor.

    Raises:
        SpecError: a plug-in cannot be loaded here, or the job uses a class that no module here defines.
    """
    plugins.load()
    with mmap.mmap(job, 0, access=mmap.ACCESS_READ) as file:
        try:
            part = pickle.loads(file)  # noqa: S301 - our own process has made it
        except (AttributeError, ImportError, pickle.UnpicklingError) as error:
            raise SpecError(f"ranks: a class of the run is in no module or plug-in: {error}") from error
    assert isinstance(part, RankJob)
    return part


def _serve(paused: PausedRun) -> None:
    # imported here because only breakpoints need a server
    from tailrace.sim.pause import serve_part

    serve_part(paused)


def run_rank(number: int, ranks: int, first: socket.socket, memory: int, read: Callable[[], RankJob]) -> int:
    """Runs one rank's part to its end, then waits until the first rank ends it.

    Args:
        number: index of this rank, from 1.
        ranks: number of ranks.
        first: socket to the first rank; carries the reason if this rank fails.
        memory: descriptor of the shared memory.
        read: returns the job, or raises SpecError.

    Returns:
        the exit status of the process: 1 if the part failed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # the name that ps and top show
    Path("/proc/self/comm").write_text(f"{NAME}{number}", "ascii")
    with first:
        try:
            part = read()
            transport = SharedMemory(memory, number, ranks, [first.fileno()])
            with plugins.blamed(f"rank {number}"):  # an error in a plug-in names its file and line
                run_part(part, transport, _serve)
        except RankLostError:
            return 1
        except SpecError as error:
            first.sendall(f"{BAD_INPUT}\n{error}".encode())
            return 1
        except RunError as error:
            first.sendall(f"\n{error}".encode())
            return 1
        first.recv(1)  # returns when the first rank closes its end of the socket
    return 0


def main(arguments: list[str]) -> int:
    """Runs a rank that was started as a separate program."""
    number, ranks, descriptor, memory, job = map(int, arguments)
    return run_rank(number, ranks, socket.socket(fileno=descriptor), memory, lambda: _read(job))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
