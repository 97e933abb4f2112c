# SPDX-License-Identifier: Apache-2.0
"""Compiles each program in a separate process, so that the event loop is not blocked.

Python's JSON parser holds the interpreter lock, and a compiler in a thread cannot be stopped. Each program
that is not in the cache gets a process. The process is stopped if its call is cancelled or the switch ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import IO, NoReturn, TypeVar

from tailrace.spec.text import one_line
from tailrace.switch.compiler.errors import CompilerError, NotCompiledError
from tailrace.switch.compiler.program import SwitchProgram, known_program, load_program

MOST_S = 300.0
"""Timeout of one compilation."""
MAX_PROGRAM_BYTES = 32 << 20
"""Largest compiled program."""

_POLL_S = 0.05
"""Interval at which cancellation is checked."""
_STOP_S = 0.3
"""How long a process may take to stop after SIGTERM before it gets SIGKILL."""

_T = TypeVar("_T")
_Problem = tuple[str, bool | None]
"""The text of an error, and `refused` of a NotCompiledError; None: it is another CompilerError."""
_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


def cancellable(cancelled: threading.Event, call: Callable[..., _T], *arguments: object) -> _T:
    """Calls a function; its compilations stop when `cancelled` is set, as when the client disconnects."""
    token = _cancelled.set(cancelled)
    try:
        return call(*arguments)
    finally:
        _cancelled.reset(token)


class ProgramCompiler:
    """Compiles programs for one switch; thread-safe. `tracing`: also compiles the build for traces."""

    def __init__(self, *, tracing: bool = False) -> None:
        self._tracing = tracing
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def __call__(self, text: bytes) -> SwitchProgram:
        """Compiles BMv2 JSON.

        Raises:
            CompilerError: the JSON is invalid, the C compiler failed, the call was cancelled, or the switch
                is stopping.
        """
        # from the cache, if the program is there; "": messages name no file
        known = None if self._tracing else known_program(text, source="")
        if known is not None:
            return known
        with os.fdopen(os.memfd_create("program"), "wb") as file:
            file.write(text)
            file.seek(0)
            process = self._start(file)
        with process:
            try:
                reply = self._wait(process)
            finally:
                _end(process)
                self._processes.discard(process)
        if not reply:
            raise CompilerError(f"the compiler ended or took longer than {MOST_S:.0f} s")
        result: SwitchProgram | _Problem = pickle.loads(reply)  # noqa: S301 - from the process started above
        if isinstance(result, SwitchProgram):
            return result
        text_of_error, refused = result
        raise (
            CompilerError(text_of_error)
            if refused is None
            else NotCompiledError(text_of_error, refused=refused)
        )

    def _start(self, text: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise CompilerError("the switch is stopping")
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tailrace.switch.p4runtime.program_compiler", str(os.getpid())),
                    *(["tracing"] if self._tracing else []),
                ],
                stdin=text,
                stdout=subprocess.PIPE,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                },
                start_new_session=True,  # to stop it together with its C compiler
            )
            self._processes.add(process)
            return process

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> bytes:
        """The reply of the process; empty: it ended without a reply, was cancelled, or took too long."""
        cancelled, ends_s = _cancelled.get(), time.monotonic() + MOST_S
        while time.monotonic() < ends_s and not (cancelled is not None and cancelled.is_set()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_POLL_S)[0]
        return b""

    def stop(self) -> None:
        """Stops all processes."""
        with self._lock:
            self._stopped = True
            processes = tuple(self._processes)
        for process in processes:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stops a process and its children, so that its output is closed."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)


def _compile_reply(text: bytes, *, tracing: bool) -> bytes:
    """The pickled program, or the pickled problem."""
    problem: _Problem
    try:
        loaded = load_program(text, source="")
        if tracing:
            loaded.tracing_build()
        reply = pickle.dumps(loaded, pickle.HIGHEST_PROTOCOL)
        if len(reply) <= MAX_PROGRAM_BYTES:
            return reply
        problem = f"the program takes {len(reply)} bytes; the limit is {MAX_PROGRAM_BYTES}", None
    except NotCompiledError as error:
        problem = str(error), error.refused
    except CompilerError as error:
        problem = str(error), None
    except Exception as error:  # noqa: BLE001 - any error is reported to the switch
        problem = one_line(f"{type(error).__name__}: {error}"), False
    return pickle.dumps(problem)


def _end_with(parent: int) -> None:
    """Stops this process when the switch ends, however it ends; `parent` is the switch's process id."""
    try:
        pidfd: int | None = os.pidfd_open(parent)
    except OSError:  # the switch has ended already, or pidfds are not allowed
        pidfd = None
    while os.getppid() == parent:
        if pidfd is None:
            time.sleep(1)
        else:
            select.select([pidfd], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Compiles the program on standard input. The first argument is the switch's process id."""

    def end(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        sys.exit(0)  # an exception, so that temporary files of the build are removed

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # standard output is for the reply only
    reply = _compile_reply(sys.stdin.buffer.read(), tracing="tracing" in sys.argv)
    with contextlib.suppress(BrokenPipeError):
        output.write(reply)
        output.close()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    main()
