# SPDX-License-Identifier: Apache-2.0
"""A process that runs one part of a network in virtual time: started by ranks.py, and by nobody else.

    python -m tailrace.experiments.backends.virtual.rank NUMBER RANKS SOCKET MEMORY JOB

The last three are descriptors: of a socket to the first rank, of the memory that all share, and of a file
with a pickled `Part`.
"""

from __future__ import annotations

import mmap
import pickle
import signal
import socket
import sys

from tailrace.experiments.backends.virtual.ranks import BAD_INPUT, Part
from tailrace.experiments.backends.virtual.run import run_part
from tailrace.experiments.backends.virtual.stop import serve_part
from tailrace.experiments.errors import RunError
from tailrace.native.virtual.ranks import RankLostError, SharedMemory
from tailrace.words import SpecError, plugins


def _read(job: int) -> Part:
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
    assert isinstance(part, Part)
    return part


def main(arguments: list[str]) -> int:
    """Runs a part to its end, and waits to be ended; 1 where it failed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number, ranks, descriptor, memory, job = map(int, arguments)
    with socket.socket(fileno=descriptor) as first:
        try:
            part = _read(job)
            transport = SharedMemory(memory, number, ranks, [descriptor])
            with plugins.blamed(f"rank {number}"):
                run_part(part, transport, serve_part)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
