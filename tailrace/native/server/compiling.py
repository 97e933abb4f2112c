# SPDX-License-Identifier: Apache-2.0
"""Compiles programs in a process of its own, so that neither a large JSON nor the C compiler holds others up.

Python's JSON reader keeps the interpreter to itself for as long as it takes, and a compiler that runs in a
thread cannot be stopped. The process starts with the first program that is not in the cache, and ends with
the switch or by it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, NoReturn

from tailrace.native.compiler.errors import NotCompiledError, ProgramError
from tailrace.native.compiler.program import Program, known_program, load_program
from tailrace.words.text import one_line

MOST_S = 300.0
"""Longest time for one program."""
MAX_PROGRAM_BYTES = 32 << 20
"""Size of a program as it comes back; what is larger is no P4 program."""

_LENGTH = struct.Struct(">BQ")
_MADE, _REFUSED, _NOT_COMPILED, _UNABLE = range(4)
_ERRORS: dict[int, Callable[[str], ProgramError]] = {
    _REFUSED: ProgramError,
    _NOT_COMPILED: functools.partial(NotCompiledError, refused=True),
    _UNABLE: functools.partial(NotCompiledError, refused=False),
}
_END_S = 0.3


class Compiler:
    """Compiles for one switch. Any thread may call; `stop` may be called while another one waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def __call__(self, text: bytes) -> Program:
        """The program of a BMv2 JSON.

        Raises:
            ProgramError: the JSON is bad, the C compiler failed, or the switch ends.
        """
        known = known_program(text, source="")
        if known is not None:
            return known
        with self._lock:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            late = threading.Timer(MOST_S, self._end, (process,))
            late.daemon = True
            late.start()
            try:
                _put(process.stdin, _MADE, text)
                kind, answer = _take(process.stdout)
            except (OSError, EOFError):
                self._end(process)
                _close(process)
                raise ProgramError(f"the compiler ended or took longer than {MOST_S:.0f} s") from None
            finally:
                late.cancel()
        if kind != _MADE:
            raise _ERRORS[kind](answer.decode(errors="replace"))
        program = pickle.loads(answer)  # noqa: S301 - from our own process, made below
        assert isinstance(program, Program)
        return program

    def _started(self) -> subprocess.Popen[bytes]:
        if self._stopped:
            raise ProgramError("the switch ends")
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tailrace.native.server.compiling", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                },
                start_new_session=True,  # it is ended together with the C compiler that it has started
            )
        return self._process

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
                if number == signal.SIGKILL:
                    return

    def stop(self) -> None:
        """Ends the process, whatever it does, and leaves nothing behind."""
        self._stopped = True
        if self._process is not None:
            self._end(self._process)
            with self._lock:  # whoever waited for it has got an end of file
                _close(self._process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for file in (process.stdin, process.stdout):
        if file is not None:
            with contextlib.suppress(OSError):  # what was not written any more
                file.close()


def _put(file: IO[bytes], kind: int, data: bytes) -> None:
    file.write(_LENGTH.pack(kind, len(data)))
    file.write(data)
    file.flush()


def _take(file: IO[bytes]) -> tuple[int, bytes]:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    kind, length = _LENGTH.unpack(head)
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return kind, data


def _answer(text: bytes) -> tuple[int, bytes]:
    try:
        program = pickle.dumps(load_program(text, source=""), pickle.HIGHEST_PROTOCOL)
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
    """The process: answers until its input ends. Its one argument is the switch's process id."""

    def end(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        sys.exit(0)  # what is being built is cleaned up on the way

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nobody else may write where the answers go
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            _, text = _take(source)
            _put(answers, *_answer(text))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the switch has ended, and so does this


if __name__ == "__main__":
    main()
