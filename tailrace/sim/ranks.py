# SPDX-License-Identifier: Apache-2.0
"""Starts and ends the other ranks of a run in virtual time that several processes share.

This process is the first rank. Its peers are forked, with the planned job. If this process has several
threads, whose locks would stay locked in a forked copy, the peers are new programs, which import everything
again and read the job from a file in memory. A socket to each peer closes when either side ends. Peers write
no files: their measurements come here.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from tailrace.sim.child import environment
from tailrace.sim.errors import RunError
from tailrace.sim.job import Job
from tailrace.sim.network.ranks import RankLostError, SharedMemory, shared_bytes
from tailrace.spec import SpecError

MODULE = "tailrace.sim.rank"
NAME = "tailrace-rank"
"""Prefix of the process name of a rank, before its number: 15 characters at most (proc(5), comm)."""
BAD_INPUT = "bad input"
"""Prefix of a rank's last message after a SpecError."""

_MESSAGE_BYTES = 1 << 16
_DEATH_S = 2.0
"""Within that a process has ended whose socket is closed."""


@dataclass(frozen=True, slots=True)
class RankJob:
    """The input of each rank: the job and its breakpoints."""

    job: Job
    breakpoints_ns: tuple[int, ...]


class _Process(Protocol):
    """What is needed of a subprocess.Popen."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Forked:
    """A copy of this process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended: int | None = None

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        status = self._look(0)
        assert status is not None
        return status

    def _look(self, options: int) -> int | None:
        """Its status, or the signal that ended it as a negative number; None: it runs."""
        if self._ended is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:  # reaped elsewhere: the status is lost
                pid, status = self._pid, 0
            if pid:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended


@dataclass(frozen=True, slots=True)
class _Rank:
    number: int
    process: _Process
    socket: socket.socket

    def end(self) -> None:
        """It has nothing to tidy up."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


@contextmanager
def other_ranks(part: RankJob, ranks: int) -> Iterator[SharedMemory]:
    """Starts all ranks but the first; gives the transport to them, and ends them with the block.

    Raises:
        SpecError: the job cannot be handed on, or connection of them found bad input.
        RunError: connection of them failed.
    """
    start: Callable[[int, socket.socket, socket.socket], _Process]
    with ExitStack() as stack:
        memory = _file("tailrace-ranks", stack)
        os.ftruncate(memory, shared_bytes(ranks))
        peers: list[_Rank] = []
        if _has_threads():
            job = _file("tailrace-job", stack)
            with open(job, "wb", closefd=False) as file:
                file.write(_pickled(part))
            start = partial(_program, memory=memory, job=job, ranks=ranks)
        else:
            start = partial(_fork, memory=memory, part=part, ranks=ranks, peers=peers)
        for number in range(1, ranks):
            peers.append(_start(number, start))
            stack.callback(peers[-1].end)
        try:
            yield SharedMemory(memory, 0, ranks, [peer.socket.fileno() for peer in peers])
        except RankLostError:
            raise _reason(peers) from None


def _has_threads() -> bool:
    """Whether this process has more threads than this connection, those of libraries in C among them."""
    return len(list(Path("/proc/self/task").iterdir())) > 1


def _file(name: str, stack: ExitStack) -> int:
    descriptor = os.memfd_create(name)
    stack.callback(os.close, descriptor)
    return descriptor


def _pickled(part: RankJob) -> bytes:
    try:
        return pickle.dumps(part)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SpecError(f"ranks: the run cannot be handed to another process: {error}") from error


def _start(number: int, start: Callable[[int, socket.socket, socket.socket], _Process]) -> _Rank:
    ours, theirs = socket.socketpair()
    with theirs:
        return _Rank(number, start(number, ours, theirs), ours)


def _program(
    number: int, _ours: socket.socket, theirs: socket.socket, *, memory: int, job: int, ranks: int
) -> subprocess.Popen[bytes]:
    given = (theirs.fileno(), memory, job)
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, *map(str, (number, ranks, *given))],
        env=environment(),
        pass_fds=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # the terminal's Ctrl-C reaches us, and we end it
        start_new_session=True,
    )


def _fork(
    number: int,
    ours: socket.socket,
    theirs: socket.socket,
    *,
    memory: int,
    part: RankJob,
    ranks: int,
    peers: Sequence[_Rank],
) -> _Forked:
    pid = os.fork()
    if pid:
        return _Forked(pid)
    # nothing of what the first rank was about to do, or to tidy up, may happen here
    status = 1
    try:
        _leave(ours, *(peer.socket for peer in peers))
        # it imports what starts us
        from tailrace.sim.rank import run_rank

        status = run_rank(number, ranks, theirs, memory, lambda: part)
    except BaseException:  # noqa: BLE001 - told as the interpreter tells it
        traceback.print_exc()
    finally:
        os._exit(status)


def _leave(*ours: socket.socket) -> None:
    """Lets go of what a forked process shares with the first rank but standard error."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    for connection in ours:
        connection.close()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)


def _reason(peers: Sequence[_Rank]) -> SpecError | RunError:
    """What the rank says, or what is known of its end, that has gone."""
    deadline = time.monotonic() + _DEATH_S
    gone: list[tuple[_Rank, int]] = []
    while not gone and time.monotonic() < deadline:
        gone = [(peer, status) for peer in peers if (status := peer.process.poll()) is not None]
        time.sleep(0.01)
    for peer, _ in gone:
        message = peer.socket.recv(_MESSAGE_BYTES).decode("utf-8", "replace")
        kind, _, reason = message.partition("\n")
        if reason:
            return SpecError(reason) if kind == BAD_INPUT else RunError(reason)
    for peer, status in gone:
        how = f"failed with status {status}" if status >= 0 else f"was ended by {_signal(-status)}"
        return RunError(f"rank {peer.number} {how}")
    return RunError("another rank does not answer")


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
