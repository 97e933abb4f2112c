# SPDX-License-Identifier: Apache-2.0
"""Compiles programs in processes of their own, so that no large JSON and no C compiler holds others up.

Python's JSON reader keeps the interpreter to itself for as long as it takes, and a compiler that runs in a
thread cannot be stopped. Each program that is not in the cache has a process, which ends with the program,
with the call that asked for it, or with the switch.
"""

from __future__ import annotations

import contextlib
import functools
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
from tailrace.switch.compiler.errors import NotCompiledError, ProgramError
from tailrace.switch.compiler.program import Program, known_program, load_program

MOST_S = 300.0
"""Longest time for one program."""
MAX_PROGRAM_BYTES = 32 << 20
"""Size of a program as it comes back; what is larger is no P4 program."""

_MADE, _REFUSED, _NOT_COMPILED, _UNABLE = range(4)
_ERRORS: dict[int, Callable[[str], ProgramError]] = {
    _REFUSED: ProgramError,
    _NOT_COMPILED: functools.partial(NotCompiledError, refused=True),
    _UNABLE: functools.partial(NotCompiledError, refused=False),
}
_LOOK_S = 0.05
"""Between two looks at whether the program is still wanted."""
_END_S = 0.3

_T = TypeVar("_T")
_gone: ContextVar[threading.Event | None] = ContextVar("gone", default=None)


def cancellable(gone: threading.Event, call: Callable[..., _T], *arguments: object) -> _T:
    """Calls something in which a program may be compiled: which ends when its client has gone."""
    token = _gone.set(gone)
    try:
        return call(*arguments)
    finally:
        _gone.reset(token)


class ProgramCompiler:
    """Compiles for one switch. Any thread may call; `stop` may be called while others wait.

    With `tracing`, the tracing build is compiled as well.
    """

    def __init__(self, *, tracing: bool = False) -> None:
        self._tracing = tracing
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def __call__(self, text: bytes) -> Program:
        """The program of a BMv2 JSON.

        Raises:
            ProgramError: the JSON is bad, the C compiler failed, its client has gone, or the switch ends.
        """
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
            raise ProgramError(f"the compiler ended or took longer than {MOST_S:.0f} s")
        if reply[0] != _MADE:
            raise _ERRORS[reply[0]](reply[1:].decode(errors="replace"))
        program = pickle.loads(memoryview(reply)[1:])  # noqa: S301 - from our own process, made below
        assert isinstance(program, Program)
        return program

    def _start(self, text: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise ProgramError("the switch ends")
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
                start_new_session=True,  # it is ended together with the C compiler that it has started
            )
            self._processes.add(process)
            return process

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> bytes:
        """The answer of the process; empty where it ended without one, or has to end."""
        gone, ends_s = _gone.get(), time.monotonic() + MOST_S
        while time.monotonic() < ends_s and not (gone is not None and gone.is_set()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_LOOK_S)[0]
        return b""

    def stop(self) -> None:
        """Ends all processes, whatever they do, and leaves nothing behind."""
        with self._lock:
            self._stopped = True
            processes = tuple(self._processes)
        for process in processes:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process with its children; who waits for it finds its output at an end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)


def _compile_reply(text: bytes, *, tracing: bool) -> tuple[int, bytes]:
    try:
        loaded = load_program(text, source="")
        if tracing:
            loaded.glass()
        program = pickle.dumps(loaded, pickle.HIGHEST_PROTOCOL)
    except NotCompiledError as error:
        return _NOT_COMPILED if error.refused else _UNABLE, str(error).encode()
    except ProgramError as error:
        return _REFUSED, str(error).encode()
    except Exception as error:  # noqa: BLE001 - the switch is told, whatever it is
        return _UNABLE, one_line(f"{type(error).__name__}: {error}").encode()
    if len(program) > MAX_PROGRAM_BYTES:
        message = f"the program takes {len(program)} bytes; the limit is {MAX_PROGRAM_BYTES}"
        return _REFUSED, message.encode()
    return _MADE, program


def _end_with(parent: int) -> None:
    """Ends this process, whatever it does, once the switch has ended; SIGKILL gives that no time to do so."""
    try:
        ended: int | None = os.pidfd_open(parent)
    except OSError:  # it has, or this machine does not allow it
        ended = None
    while os.getppid() == parent:
        if ended is None:
            time.sleep(1)
        else:
            select.select([ended], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """The process, for one program on its input. Its first argument is the switch's process id."""

    def end(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        sys.exit(0)  # what is being built is cleaned up on the way

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # only the answer may be written there
    kind, reply = _compile_reply(sys.stdin.buffer.read(), tracing="tracing" in sys.argv)
    with contextlib.suppress(BrokenPipeError):
        output.write(bytes([kind]) + reply)
        output.close()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    main()
