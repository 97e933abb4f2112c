# SPDX-License-Identifier: Apache-2.0
"""Starts and ends the other ranks of a run in virtual time. A rank is a process that simulates a part of the
network.

This process is the first rank. It forks the other ranks (its peers), which inherit the job. If this process
has several threads, whose locks would stay locked in a forked copy, it starts the peers as new programs.
These import everything again and read the job from a file in memory. A socket to each peer closes when either
side ends. Peers write no files: they send their measurements to the first rank.
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
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from tailrace.sim.child import environment
from tailrace.sim.errors import RunError
from tailrace.sim.job import Job
from tailrace.sim.network.ranks import RankLostError, SharedMemory, shared_bytes
from tailrace.spec import SpecError

MODULE = "tailrace.sim.rank"
NAME = "tailrace-rank"
"""Prefix of a rank's process name; its index follows: 15 characters at most (proc(5), comm)."""
BAD_INPUT = "bad input"
"""First line of a rank's last message after a SpecError; the reason follows."""

_MESSAGE_BYTES = 1 << 16
_EXIT_TIMEOUT_S = 2.0
"""How long to wait for the exit of a process whose socket is closed."""


class RankJob(msgspec.Struct, frozen=True):
    """The input of each rank: the job and its breakpoints."""

    job: Job
    breakpoints_ns: tuple[int, ...]


class _Process(Protocol):
    """The part of subprocess.Popen that this module needs."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Forked:
    """A forked copy of this process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        status = self._wait(0)
        assert status is not None
        return status

    def _wait(self, options: int) -> int | None:
        """The exit status; negative: the number of the signal that ended the process; None: it still runs."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:  # reaped elsewhere: the status is lost
                pid, status = self._pid, 0
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status


class _Rank(msgspec.Struct, frozen=True):
    number: int
    process: _Process
    socket: socket.socket

    def end(self) -> None:
        """Kills the process, which has nothing to clean up."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


@contextmanager
def other_ranks(part: RankJob, ranks: int) -> Iterator[SharedMemory]:
    """Starts all ranks but the first; yields the transport to them, and ends them after the block.

    Raises:
        SpecError: the job cannot be pickled, or one of the ranks reported bad input.
        RunError: one of the ranks failed.
    """
    start: Callable[[int, socket.socket, socket.socket], _Process]
    with ExitStack() as stack:
        memory = _memory_file("tailrace-ranks", stack)
        os.ftruncate(memory, shared_bytes(ranks))
        peers: list[_Rank] = []
        if _has_threads():
            job = _memory_file("tailrace-job", stack)
            with open(job, "wb", closefd=False) as file:
                file.write(_pickled(part))
            start = partial(_start_program, memory=memory, job=job, ranks=ranks)
        else:
            start = partial(_fork, memory=memory, part=part, ranks=ranks, peers=peers)
        for number in range(1, ranks):
            peers.append(_start(number, start))
            stack.callback(peers[-1].end)
        try:
            yield SharedMemory(memory, 0, ranks, [peer.socket.fileno() for peer in peers])
        except RankLostError:
            raise _failure(peers) from None


def _has_threads() -> bool:
    """Whether this process has more than one thread, counting those of C libraries."""
    return len(list(Path("/proc/self/task").iterdir())) > 1


def _memory_file(name: str, stack: ExitStack) -> int:
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


def _start_program(
    number: int, _ours: socket.socket, theirs: socket.socket, *, memory: int, job: int, ranks: int
) -> subprocess.Popen[bytes]:
    given = (theirs.fileno(), memory, job)
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, *map(str, (number, ranks, *given))],
        env=environment(),
        pass_fds=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # the terminal's Ctrl-C reaches only the first rank, which ends this one
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
    # the child must run neither the first rank's remaining code nor its clean-up
    status = 1
    try:
        _detach(ours, *(peer.socket for peer in peers))
        # an import at the top of this file would be circular
        from tailrace.sim.rank import run_rank

        status = run_rank(number, ranks, theirs, memory, lambda: part)
    except BaseException:  # noqa: BLE001 - printed as the interpreter would print it
        traceback.print_exc()
    finally:
        os._exit(status)


def _detach(*ours: socket.socket) -> None:
    """Releases all that a forked process shares with the first rank, except standard error."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    for connection in ours:
        connection.close()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)


def _failure(peers: Sequence[_Rank]) -> SpecError | RunError:
    """The error of a rank that has ended: the reason that it sent, or else its exit status."""
    deadline = time.monotonic() + _EXIT_TIMEOUT_S
    ended: list[tuple[_Rank, int]] = []
    while not ended and time.monotonic() < deadline:
        ended = [(peer, status) for peer in peers if (status := peer.process.poll()) is not None]
        time.sleep(0.01)
    for peer, _ in ended:
        message = peer.socket.recv(_MESSAGE_BYTES).decode("utf-8", "replace")
        kind, _, reason = message.partition("\n")
        if reason:
            return SpecError(reason) if kind == BAD_INPUT else RunError(reason)
    for peer, status in ended:
        how = f"exited with status {status}" if status >= 0 else f"was ended by {_signal(-status)}"
        return RunError(f"rank {peer.number} {how}")
    return RunError("another rank does not answer")


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
