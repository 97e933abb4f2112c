# SPDX-License-Identifier: Apache-2.0
"""The other processes of a run in virtual time that several share: starting them, and ending them.

This process is the first rank. The others get the job in a file in memory, and a socket by which they hear
that we have gone, and we that they have. They write nothing anywhere: what they have measured comes here.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tailrace.experiments.backends.child import environment
from tailrace.experiments.backends.job import Job
from tailrace.experiments.errors import RunError
from tailrace.native.virtual.ranks import RankLostError, SharedMemory, shared_bytes
from tailrace.words import SpecError

MODULE = "tailrace.experiments.backends.virtual.rank"
BAD_INPUT = "bad input"
"""What a rank says before its reason, where words are to blame."""

_LAST_WORDS_BYTES = 1 << 16
_DEATH_S = 2.0
"""Within that a process has ended whose socket is closed."""


@dataclass(frozen=True, slots=True)
class Part:
    """What each rank is told: the job, and where all of them stop."""

    job: Job
    stops_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Rank:
    number: int
    process: subprocess.Popen[bytes]
    socket: socket.socket

    def end(self) -> None:
        """It has nothing to tidy up."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


@contextmanager
def other_ranks(part: Part, ranks: int) -> Iterator[SharedMemory]:
    """All ranks but the first, and what carries messages to them; they have gone when the block ends.

    Raises:
        SpecError: the job cannot be handed on, or one of them found bad input.
        RunError: one of them failed.
    """
    with ExitStack() as stack:
        memory = _file("tailrace-ranks", stack)
        os.ftruncate(memory, shared_bytes(ranks))
        job = _file("tailrace-job", stack)
        with open(job, "wb", closefd=False) as file:
            file.write(_pickled(part))
        others = []
        for number in range(1, ranks):
            others.append(_start(number, ranks, (memory, job)))
            stack.callback(others[-1].end)
        try:
            yield SharedMemory(memory, 0, ranks, [other.socket.fileno() for other in others])
        except RankLostError:
            raise _reason(others) from None


def _file(name: str, stack: ExitStack) -> int:
    descriptor = os.memfd_create(name)
    stack.callback(os.close, descriptor)
    return descriptor


def _pickled(part: Part) -> bytes:
    try:
        return pickle.dumps(part)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SpecError(f"ranks: the run cannot be handed to another process: {error}") from error


def _start(number: int, ranks: int, files: Sequence[int]) -> _Rank:
    ours, theirs = socket.socketpair()
    with theirs:
        given = (theirs.fileno(), *files)
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, *map(str, (number, ranks, *given))],
            env=environment(),
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # the terminal's Ctrl-C reaches us, and we end it
            start_new_session=True,
        )
    return _Rank(number, process, ours)


def _reason(others: Sequence[_Rank]) -> SpecError | RunError:
    """What the rank says, or what is known of its end, that has gone."""
    deadline = time.monotonic() + _DEATH_S
    gone: list[_Rank] = []
    while not gone and time.monotonic() < deadline:
        gone = [other for other in others if other.process.poll() is not None]
        time.sleep(0.01)
    for other in gone:
        words = other.socket.recv(_LAST_WORDS_BYTES).decode("utf-8", "replace")
        kind, _, reason = words.partition("\n")
        if reason:
            return SpecError(reason) if kind == BAD_INPUT else RunError(reason)
    for other in gone:
        status = other.process.returncode
        how = f"failed with status {status}" if status >= 0 else f"was ended by {_signal(-status)}"
        return RunError(f"rank {other.number} {how}")
    return RunError("another rank does not answer")


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
